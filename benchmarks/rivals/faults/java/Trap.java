import java.lang.reflect.*;
import java.nio.file.*;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.*;
import javax.transaction.xa.XAResource;

/** Has a call of an XAResource stand still for ever, once a file says so: "commit:after:/a/file:2" behind the second commit. */
class Trap {
  static final AtomicInteger seen = new AtomicInteger();

  static XADataSource around(XADataSource source, String trap) {
    String[] parts = trap.split(":");
    return proxy(XADataSource.class, source, (m, real) -> proxied(XAConnection.class, real.call(),
        (m2, real2) -> proxied(XAResource.class, real2.call(), (m3, real3) -> {
          boolean hit = m3.getName().equals(parts[0]) && seen.incrementAndGet() >= Integer.parseInt(parts[3]);
          if (hit && parts[1].equals("before")) stop(parts[2]);
          Object answer = real3.call();
          if (hit && parts[1].equals("after")) stop(parts[2]);
          return answer;
        })));
  }

  static void stop(String file) throws Exception {
    Files.createFile(Path.of(file));
    Thread.sleep(Long.MAX_VALUE);
  }

  interface Real { Object call() throws Throwable; }
  interface Around { Object call(Method method, Real real) throws Throwable; }

  static Object proxied(Class<?> type, Object target, Around around) {
    return type.isInstance(target) ? proxy(type, target, around) : target;
  }

  @SuppressWarnings("unchecked")
  static <T> T proxy(Class<?> type, Object target, Around around) {
    return (T) Proxy.newProxyInstance(Trap.class.getClassLoader(), new Class<?>[] {type}, (p, method, arguments) ->
        around.call(method, () -> {
          try { return method.invoke(target, arguments); } catch (InvocationTargetException error) { throw error.getCause(); }
        }));
  }
}
