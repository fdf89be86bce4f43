import java.io.*;
import java.nio.file.*;
import java.sql.*;
import java.time.*;
import java.util.*;
import java.util.function.*;
import javax.sql.XADataSource;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.serialization.*;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.configuration.*;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.jdbc.*;
import org.apache.flink.connector.jdbc.core.datastream.sink.JdbcSink;
import org.apache.flink.connector.kafka.sink.*;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.fs.Path;
import org.apache.flink.formats.csv.CsvReaderFormat;
import org.apache.flink.runtime.minicluster.*;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.*;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.dataformat.csv.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.function.SerializableSupplier;

/** `java Jobs serve`: commands on stdin, one JSON line per job on stdout. `java Jobs COMMAND k=v …`: one job. */
public class Jobs {
  static final long JVM = java.lang.management.ManagementFactory.getRuntimeMXBean().getStartTime();
  static MiniCluster cluster;
  static Configuration clusterConf = new Configuration();

  public static void main(String[] a) throws Exception {
    clusterConf.setString("taskmanager.memory.network.fraction", "0.1");
    clusterConf.setString("rest.bind-address", "127.0.0.1");
    clusterConf.setString("rest.address", "127.0.0.1");
    cluster = new MiniCluster(new MiniClusterConfiguration.Builder().setNumTaskManagers(1)
        .setNumSlotsPerTaskManager(2).setConfiguration(clusterConf).withRandomPorts().build());
    cluster.start();
    if (a[0].equals("serve")) {
      say("{\"ready\": " + since() + "}");
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
      for (String line; (line = in.readLine()) != null && !line.equals("quit"); ) one(line.trim().split("\\s+"));
    } else one(a);
    cluster.close();
    System.exit(0);
  }

  static double since() { return (System.currentTimeMillis() - JVM) / 1000.0; }
  static void say(String s) { System.out.println(s); System.out.flush(); }

  static void one(String[] a) {
    Map<String, String> o = new HashMap<>();
    for (int i = 1; i < a.length; i++) { String[] kv = a[i].split("=", 2); o.put(kv[0], kv[1]); }
    long t = System.nanoTime();
    try {
      StreamExecutionEnvironment env = env(o);
      if (a[0].equals("pg")) pg(env, o); else if (a[0].equals("win")) win(env, o); else throw new IllegalArgumentException(a[0]);
      var g = env.getStreamGraph().getJobGraph();
      say("{\"job\": \"" + g.getJobID() + "\"}");
      var r = cluster.executeJobBlocking(g);
      say(String.format(Locale.ROOT, "{\"ok\": true, \"wall\": %.3f, \"net\": %.3f, \"since_jvm\": %.3f}",
          (System.nanoTime() - t) / 1e9, r.getNetRuntime() / 1000.0, since()));
    } catch (Throwable e) {
      StringWriter w = new StringWriter(); e.printStackTrace(new PrintWriter(w)); System.err.println(w);
      Throwable c = e; while (c.getCause() != null) c = c.getCause();
      say("{\"ok\": false, \"error\": " + quote(c.toString()) + "}");
    }
  }

  static String quote(String s) { return "\"" + s.replace("\\", "\\\\").replace("\"", "'").replace("\n", " ") + "\""; }

  static StreamExecutionEnvironment env(Map<String, String> o) {
    Configuration c = new Configuration();
    c.setString("parallelism.default", o.getOrDefault("parallelism", "2"));
    if (o.containsKey("checkpoints")) {
      c.setString("execution.checkpointing.dir", "file://" + o.get("checkpoints"));
      c.setString("execution.checkpointing.storage", "filesystem");
      c.setString("execution.checkpointing.interval", o.getOrDefault("interval", "10000") + " ms");
      c.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
      c.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
      c.setString("execution.checkpointing.num-retained", "3");
    }
    c.setString("restart-strategy.type", "none");
    c.setString("pipeline.object-reuse", o.getOrDefault("reuse", "false"));
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(c);
    if (o.getOrDefault("runtime", "streaming").equals("batch")) env.setRuntimeMode(RuntimeExecutionMode.BATCH);
    return env;
  }

  // ------------------------------------------------------------------ files → PostgreSQL
  public static class Flight {
    public long id; public Integer month, day, dep_time, dep_delay, arr_delay, flight;
    public String carrier, tailnum, origin, dest, time_hour;
    public Flight() {}
  }
  static final String[] COLS = {"id", "month", "day", "dep_time", "dep_delay", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest", "time_hour"};

  static void pg(StreamExecutionEnvironment env, Map<String, String> o) {
    CsvReaderFormat<Flight> format = CsvReaderFormat.forSchema(CsvMapper::new, m -> {
      CsvSchema.Builder b = CsvSchema.builder();
      for (String c : COLS) b.addColumn(c);
      return b.build().withSkipFirstDataRow(true).withNullValue("NA");
    }, TypeInformation.of(Flight.class));
    Path[] files = Arrays.stream(o.get("files").split(",")).map(Path::new).toArray(Path[]::new);
    DataStream<Flight> in = env.fromSource(FileSource.forRecordStreamFormat(format, files).build(), WatermarkStrategy.noWatermarks(), "csv").uid("csv");
    String marks = String.join(",", Collections.nCopies(COLS.length, "?"));
    var builder = JdbcSink.<Flight>builder()
        .withExecutionOptions(JdbcExecutionOptions.builder().withBatchSize(Integer.parseInt(o.getOrDefault("batch", "10000"))).withBatchIntervalMs(0).withMaxRetries(o.get("mode").startsWith("xa") ? 0 : 3).build())
        .withQueryStatement("INSERT INTO " + o.get("table") + " (" + String.join(",", COLS) + ") VALUES (" + marks + ")", Jobs::bind);
    String url = o.get("url");
    if (o.get("mode").startsWith("xa")) {
      SerializableSupplier<XADataSource> ds = () -> {
        org.postgresql.xa.PGXADataSource d = new org.postgresql.xa.PGXADataSource();
        d.setUrl(url);
        try { d.setReWriteBatchedInserts(true); } catch (Exception e) { throw new RuntimeException(e); }
        return d;
      };
      in.sinkTo(builder.buildExactlyOnce(JdbcExactlyOnceOptions.builder().withTransactionPerConnection(true).build(), ds)).name("xa").uid("sink");
    } else
      in.sinkTo(builder.buildAtLeastOnce(new JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
          .withUrl(url + "&reWriteBatchedInserts=true").withDriverName("org.postgresql.Driver").build())).name("alo").uid("sink");
  }

  static void bind(PreparedStatement s, Flight f) throws SQLException {
    s.setLong(1, f.id); i(s, 2, f.month); i(s, 3, f.day); i(s, 4, f.dep_time); i(s, 5, f.dep_delay); i(s, 6, f.arr_delay);
    s.setString(7, f.carrier); i(s, 8, f.flight); s.setString(9, f.tailnum); s.setString(10, f.origin); s.setString(11, f.dest);
    s.setObject(12, OffsetDateTime.parse(f.time_hour));
  }
  static void i(PreparedStatement s, int n, Integer v) throws SQLException { if (v == null) s.setNull(n, java.sql.Types.INTEGER); else s.setInt(n, v); }

  // ------------------------------------------------------------------ Kafka → hours → Kafka
  public static class Event { public long id, at; public String origin, carrier; public Integer delay; public Event() {} }
  public static class Acc { public long n, sum; public Acc() {} }

  public static class Read extends AbstractDeserializationSchema<Event> {
    transient ObjectMapper m;
    @Override public Event deserialize(byte[] b) throws IOException {
      if (m == null) m = new ObjectMapper();
      JsonNode j = m.readTree(b); Event e = new Event();
      e.id = j.get("id").asLong(); e.origin = j.get("origin").asText(); e.carrier = j.get("carrier").asText();
      e.at = Instant.parse(j.get("at").asText()).toEpochMilli();
      JsonNode d = j.get("delay"); e.delay = d == null || d.isNull() ? null : d.asInt();
      return e;
    }
  }
  public static class Sum implements AggregateFunction<Event, Acc, Acc> {
    public Acc createAccumulator() { return new Acc(); }
    public Acc add(Event e, Acc a) { a.n++; if (e.delay != null) a.sum += e.delay; return a; }
    public Acc getResult(Acc a) { return a; }
    public Acc merge(Acc a, Acc b) { a.n += b.n; a.sum += b.sum; return a; }
  }
  public static class Out extends ProcessWindowFunction<Acc, String, String, TimeWindow> {
    @Override public void process(String k, Context c, Iterable<Acc> in, Collector<String> out) {
      Acc a = in.iterator().next();
      out.collect("{\"origin\":\"" + k + "\",\"window_start\":\"" + Instant.ofEpochMilli(c.window().getStart()) + "\",\"flights\":" + a.n + ",\"delay\":" + a.sum + "}");
    }
  }

  static void win(StreamExecutionEnvironment env, Map<String, String> o) {
    var source = KafkaSource.<Event>builder().setBootstrapServers(o.get("bootstrap")).setTopics(o.get("in"))
        .setGroupId(o.get("prefix")).setStartingOffsets(OffsetsInitializer.earliest()).setBounded(OffsetsInitializer.latest())
        .setProperty("isolation.level", "read_committed").setValueOnlyDeserializer(new Read()).build();
    var sink = KafkaSink.<String>builder().setBootstrapServers(o.get("bootstrap"))
        .setRecordSerializer(KafkaRecordSerializationSchema.builder().setTopic(o.get("out")).setValueSerializationSchema(new SimpleStringSchema()).build());
    if (o.getOrDefault("mode", "eo").equals("eo"))
      sink.setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE).setTransactionalIdPrefix(o.get("prefix")).setProperty("transaction.timeout.ms", "600000");
    else sink.setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE);
    env.fromSource(source, WatermarkStrategy.<Event>forBoundedOutOfOrderness(Duration.ofMinutes(30)).withTimestampAssigner((e, t) -> e.at), "in")
        .keyBy(e -> e.origin).window(TumblingEventTimeWindows.of(Duration.ofHours(1))).aggregate(new Sum(), new Out())
        .sinkTo(sink.build()).name("out");
  }
}
