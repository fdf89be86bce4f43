import java.util.*;
import javax.sql.XADataSource;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.connector.jdbc.*;
import org.apache.flink.connector.jdbc.core.datastream.sink.JdbcSink;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.minicluster.*;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.function.SerializableSupplier;
import org.postgresql.xa.PGXADataSource;

/** Numbers of a file, one a line, into a table by Flink's XA sinks: `java Rows key=value …` runs one job, and says how it ended. */
public class Rows {
  static final int BATCH = 500;

  public static void main(String[] words) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (String word : words) { String[] pair = word.split("=", 2); options.put(pair[0], pair[1]); }
    Configuration local = new Configuration();
    local.setString("rest.bind-address", "127.0.0.1");
    local.setString("rest.address", "127.0.0.1");
    try (MiniCluster cluster = new MiniCluster(new MiniClusterConfiguration.Builder()
        .setNumTaskManagers(1).setNumSlotsPerTaskManager(1).setConfiguration(local).withRandomPorts().build())) {
      cluster.start();
      cluster.executeJobBlocking(job(options).getStreamGraph().getJobGraph());
      System.out.println("the job ended well");
    } catch (Throwable error) {
      error.printStackTrace();
      while (error.getCause() != null) error = error.getCause();
      System.out.println("the job failed: " + error);
    }
    System.exit(0);
  }

  static StreamExecutionEnvironment job(Map<String, String> options) {
    Configuration settings = new Configuration();
    settings.setString("parallelism.default", "1");
    settings.setString("restart-strategy.type", "none");
    if (options.containsKey("checkpoints")) {
      settings.setString("execution.checkpointing.dir", "file://" + options.get("checkpoints"));
      settings.setString("execution.checkpointing.storage", "filesystem");
      settings.setString("execution.checkpointing.interval", "2000 ms");
      settings.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
      settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
      settings.setString("execution.checkpointing.num-retained", "3");
    }
    if (options.containsKey("restore")) settings.setString("execution.state-recovery.path", options.get("restore"));
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(settings);
    if (!options.containsKey("checkpoints")) env.setRuntimeMode(RuntimeExecutionMode.BATCH);
    long pause = 1_000_000_000L / Long.parseLong(options.get("rate")); // slow enough that checkpoints fall into it
    FileSource<String> file = FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(options.get("file"))).build();
    DataStream<Long> numbers = env.fromSource(file, WatermarkStrategy.noWatermarks(), "numbers").uid("numbers")
        .map(line -> { java.util.concurrent.locks.LockSupport.parkNanos(pause); return Long.valueOf(line); }).returns(Long.class).uid("slow");
    sink(numbers, options);
    return env;
  }

  static void sink(DataStream<Long> numbers, Map<String, String> options) {
    String url = options.get("url"), trap = options.get("trap"), insert = "INSERT INTO " + options.get("table") + " (id) VALUES (?)";
    SerializableSupplier<XADataSource> database = () -> {
      PGXADataSource found = new PGXADataSource();
      found.setUrl(url);
      return trap == null ? found : Trap.around(found, trap);
    };
    JdbcExecutionOptions execution = JdbcExecutionOptions.builder().withBatchSize(BATCH).withBatchIntervalMs(0).withMaxRetries(0).build();
    JdbcExactlyOnceOptions once = JdbcExactlyOnceOptions.builder().withTransactionPerConnection(true).build();
    if (options.get("sink").equals("function")) Function.add(numbers, insert, execution, once, database);
    else numbers.sinkTo(JdbcSink.<Long>builder().withExecutionOptions(execution)
        .withQueryStatement(insert, (statement, id) -> statement.setLong(1, id)).buildExactlyOnce(once, database)).uid("sink");
  }

  /** The sink of the 3.x connector; it isn't there in 4.x, so it is found by its name. */
  static class Function {
    static void add(DataStream<Long> numbers, String insert, JdbcExecutionOptions execution, JdbcExactlyOnceOptions once, SerializableSupplier<XADataSource> database) {
      try {
        Class<?> sinks = Class.forName("org.apache.flink.connector.jdbc.JdbcSink");
        Object sink = Arrays.stream(sinks.getMethods()).filter(m -> m.getName().equals("exactlyOnceSink")).findFirst().orElseThrow()
            .invoke(null, insert, (JdbcStatementBuilder<Long>) (statement, id) -> statement.setLong(1, id), execution, once, database);
        Class<?> function = Class.forName("org.apache.flink.streaming.api.functions.sink.SinkFunction");
        Object added = DataStream.class.getMethod("addSink", function).invoke(numbers, sink);
        added.getClass().getMethod("uid", String.class).invoke(added, "sink");
      } catch (ReflectiveOperationException error) { throw new RuntimeException(error); }
    }
  }
}
