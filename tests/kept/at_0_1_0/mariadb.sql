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
INSERT INTO `lockstep_keys` VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria','newest','kept.moves_newest',1,2);
INSERT INTO `lockstep_keys` VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria','newest','kept.moves_newest',2,1);
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
INSERT INTO `lockstep_marker` VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria','newest',1,171,'02f8ab5d3c30e02cef0efbfa54fc47f966979d7e9fac9426a7ba34d46fbc81bf','{\"moves\": 2}','2026-11-29 10:37:22.828318');
INSERT INTO `lockstep_marker` VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria','newest',2,180,'01d65d37fed11960899c171e6b02f6aa8e47a8f8aa6cff5bcc26b1a31e5c714e','{\"moves\": 2}','2026-11-29 10:37:27.158323');
INSERT INTO `lockstep_marker` VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria','prepared',1,168,'02f8ab5d3c30e02cef0efbfa54fc47f966979d7e9fac9426a7ba34d46fbc81bf','{\"moves\": 2}','2026-11-29 10:37:22.265627');
INSERT INTO `lockstep_marker` VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria','prepared',2,177,'01d65d37fed11960899c171e6b02f6aa8e47a8f8aa6cff5bcc26b1a31e5c714e','{\"moves\": 2}','2026-11-29 10:37:26.698108');
INSERT INTO `lockstep_marker` VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria_again','repeated',1,165,'ac4d69bd199db0fd5d946f27757f694bea9bc9e3b481f25aae1fef5d0505fa15','{\"moves\": 2}','2026-11-29 10:37:13.832816');
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
INSERT INTO `lockstep_target` VALUES ('kept.moves_newest','dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria','newest',0);
INSERT INTO `lockstep_target` VALUES ('kept.moves_prepared','dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria','prepared',0);
INSERT INTO `lockstep_target` VALUES ('kept.moves_repeated','dd26b102-bcf7-4f98-8bc1-33d55654ea6c','maria_again','repeated',0);
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `lockstep_target_id` (
  `only_one` tinyint(4) NOT NULL DEFAULT 1 CHECK (`only_one` = 1),
  `id` char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (`only_one`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
INSERT INTO `lockstep_target_id` VALUES (1,'91dd882e-f156-45ba-b17a-569ca083c700');
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
