/*M!999999\- enable the sandbox mode */ 
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `lockstep_keys` (
  `deployment` char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `pipeline` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `sink` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `relation` varchar(130) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `new` bigint(20) NOT NULL,
  PRIMARY KEY (`deployment`,`pipeline`,`sink`,`relation`,`epoch`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
INSERT INTO `lockstep_keys` VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da','maria','newest','kept.moves_newest',1,2);
INSERT INTO `lockstep_keys` VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da','maria','newest','kept.moves_newest',2,1);
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `lockstep_marker` (
  `deployment` char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `pipeline` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `sink` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `token` bigint(20) NOT NULL,
  `manifest_hash` char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `rows` longtext DEFAULT NULL,
  `published_at` datetime(6) NOT NULL DEFAULT current_timestamp(6),
  PRIMARY KEY (`deployment`,`pipeline`,`sink`,`epoch`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
INSERT INTO `lockstep_marker` VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da','maria','newest',1,171,'6baa0258540ffd9a06ebc77a85f96d9bbb7ce76ee11b05ea0c955032a4cd432f','{\"moves\": 2}','2026-11-29 02:03:45.867222');
INSERT INTO `lockstep_marker` VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da','maria','newest',2,180,'4113c74bc660f5635536a88003a40335f9928175b6180d92d16fe939eef23d5e','{\"moves\": 2}','2026-11-29 02:03:47.985579');
INSERT INTO `lockstep_marker` VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da','maria','prepared',1,168,'6baa0258540ffd9a06ebc77a85f96d9bbb7ce76ee11b05ea0c955032a4cd432f','{\"moves\": 2}','2026-11-29 02:03:45.494848');
INSERT INTO `lockstep_marker` VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da','maria','prepared',2,177,'4113c74bc660f5635536a88003a40335f9928175b6180d92d16fe939eef23d5e','{\"moves\": 2}','2026-11-29 02:03:47.790543');
INSERT INTO `lockstep_marker` VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da','maria_again','repeated',1,165,'af4531d89d5b67db088db9a6ffae7bbde945d32b0fc771e7174f7792aeaa528a','{\"moves\": 2}','2026-11-29 02:03:40.562952');
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `lockstep_range` (
  `deployment` char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `pipeline` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `sink` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `span` varchar(80) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `token` bigint(20) NOT NULL,
  PRIMARY KEY (`deployment`,`pipeline`,`sink`,`span`),
  UNIQUE KEY `deployment` (`deployment`,`pipeline`,`sink`,`token`,`epoch`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `lockstep_target` (
  `relation` varchar(130) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  `deployment` char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `pipeline` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `sink` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `shared` tinyint(1) NOT NULL,
  PRIMARY KEY (`relation`,`deployment`,`pipeline`,`sink`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
INSERT INTO `lockstep_target` VALUES ('kept.moves_newest','815ea124-ae84-4006-ab92-b0cd6027b1da','maria','newest',0);
INSERT INTO `lockstep_target` VALUES ('kept.moves_prepared','815ea124-ae84-4006-ab92-b0cd6027b1da','maria','prepared',0);
INSERT INTO `lockstep_target` VALUES ('kept.moves_repeated','815ea124-ae84-4006-ab92-b0cd6027b1da','maria_again','repeated',0);
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `lockstep_target_id` (
  `only_one` tinyint(4) NOT NULL DEFAULT 1 CHECK (`only_one` = 1),
  `id` char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (`only_one`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
INSERT INTO `lockstep_target_id` VALUES (1,'f9e82fc8-6e06-4ba8-ac3d-546f84433a29');
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `moves` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `piece` varchar(20) DEFAULT NULL,
  `square` varchar(2) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=8 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
INSERT INTO `moves` VALUES (1,'king','e1');
INSERT INTO `moves` VALUES (2,'rook','a1');
INSERT INTO `moves` VALUES (3,'king','e2');
INSERT INTO `moves` VALUES (4,'pawn','b2');
INSERT INTO `moves` VALUES (5,'pawn','b4');
INSERT INTO `moves` VALUES (6,'queen','d1');
INSERT INTO `moves` VALUES (7,'queen','d8');
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `moves_newest` (
  `id` bigint(20) DEFAULT NULL,
  `piece` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `square` longtext DEFAULT NULL,
  `lockstep_order` bigint(20) NOT NULL,
  `lockstep_epoch` bigint(20) NOT NULL,
  PRIMARY KEY (`piece`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
INSERT INTO `moves_newest` VALUES (3,'king','e2',2,2);
INSERT INTO `moves_newest` VALUES (4,'pawn','b2',2,2);
INSERT INTO `moves_newest` VALUES (2,'rook','a1',1,1);
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `moves_prepared` (
  `id` bigint(20) DEFAULT NULL,
  `piece` longtext DEFAULT NULL,
  `square` longtext DEFAULT NULL,
  `lockstep_epoch` bigint(20) NOT NULL,
  KEY `lockstep_epoch` (`lockstep_epoch`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
INSERT INTO `moves_prepared` VALUES (1,'king','e1',1);
INSERT INTO `moves_prepared` VALUES (2,'rook','a1',1);
INSERT INTO `moves_prepared` VALUES (3,'king','e2',2);
INSERT INTO `moves_prepared` VALUES (4,'pawn','b2',2);
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `moves_repeated` (
  `id` bigint(20) DEFAULT NULL,
  `piece` longtext DEFAULT NULL,
  `lockstep_epoch` bigint(20) NOT NULL,
  KEY `lockstep_epoch` (`lockstep_epoch`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
INSERT INTO `moves_repeated` VALUES (1,'king',1);
INSERT INTO `moves_repeated` VALUES (2,'rook',1);
