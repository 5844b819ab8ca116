import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.scalatest.Reporter;
import org.scalatest.events.Event;
import org.scalatest.events.RunAborted;
import org.scalatest.events.SuiteAborted;
import org.scalatest.events.SuiteCompleted;
import org.scalatest.events.SuiteStarting;
import org.scalatest.events.TestCanceled;
import org.scalatest.events.TestFailed;
import org.scalatest.events.TestIgnored;
import org.scalatest.events.TestPending;
import org.scalatest.events.TestStarting;
import org.scalatest.events.TestSucceeded;
import scala.Option;

/**
 * ScalaTest reporter: appends a JSON line {event, suite, test, ms, message} for each test and suite to the file that
 * the property {@code suites.log} names. Each line is written at once, so nothing is lost if the JVM crashes.
 *
 * <p>It is also a watchdog: a suite that runs longer than {@code suites.limit.s} seconds halts the JVM with status 124.
 */
public final class SuiteLog implements Reporter {
  /** Maximum length of a message in characters. Messages of testStream contain whole plans. */
  private static final int MESSAGE_LIMIT = 3000;
  private static final int MAX_CAUSES = 5;
  private static final int MAX_FRAMES = 12;

  private final ObjectMapper json = new ObjectMapper();
  private final PrintStream log;
  private volatile String suite = null;
  private volatile String test = null;
  private volatile long suiteStart = 0;
  private volatile long testStart = 0;

  public SuiteLog() throws IOException {
    log = new PrintStream(new FileOutputStream(System.getProperty("suites.log"), true), true, StandardCharsets.UTF_8);
    Thread watchdog = new Thread(this::watch, "suite-watchdog");
    watchdog.setDaemon(true);
    watchdog.start();
  }

  @Override
  public void apply(Event event) {
    if (event instanceof SuiteStarting e) {
      suite = named(e.suiteClassName(), e.suiteName());
      suiteStart = System.currentTimeMillis();
      line("suite_start", suite, null, 0, null);
    } else if (event instanceof SuiteCompleted e) {
      line("suite_end", named(e.suiteClassName(), e.suiteName()), null, since(suiteStart), null);
      suite = null;
    } else if (event instanceof SuiteAborted e) {
      line("suite_aborted", named(e.suiteClassName(), e.suiteName()), null, since(suiteStart),
          text(e.message(), e.throwable()));
      suite = null;
    } else if (event instanceof RunAborted e) {
      line("run_aborted", suite, null, 0, text(e.message(), e.throwable()));
    } else if (event instanceof TestStarting e) {
      test = e.testName();
      testStart = System.currentTimeMillis();
    } else if (event instanceof TestSucceeded e) {
      line("passed", named(e.suiteClassName(), e.suiteName()), e.testName(), since(testStart), null);
    } else if (event instanceof TestFailed e) {
      line("failed", named(e.suiteClassName(), e.suiteName()), e.testName(), since(testStart),
          text(e.message(), e.throwable()));
    } else if (event instanceof TestCanceled e) {
      line("canceled", named(e.suiteClassName(), e.suiteName()), e.testName(), since(testStart), e.message());
    } else if (event instanceof TestIgnored e) {
      line("ignored", named(e.suiteClassName(), e.suiteName()), e.testName(), 0, null);
    } else if (event instanceof TestPending e) {
      line("ignored", named(e.suiteClassName(), e.suiteName()), e.testName(), 0, "pending");
    }
  }

  private void watch() {
    long limit = Long.getLong("suites.limit.s") * 1000L;
    while (true) {
      try {
        Thread.sleep(1000);
      } catch (InterruptedException e) {
        return;
      }
      String running = suite;
      if (running != null && since(suiteStart) > limit) {
        line("suite_killed", running, test, since(suiteStart), "in test for " + since(testStart) + " ms\n" + stacks());
        Runtime.getRuntime().halt(124);
      }
    }
  }

  /** Returns the stack traces of the threads that run the tests. */
  private static String stacks() {
    StringBuilder out = new StringBuilder();
    Thread.getAllStackTraces().forEach((thread, frames) -> {
      if (thread.getName().startsWith("ScalaTest-")) {
        out.append(thread.getName()).append('\n');
        for (StackTraceElement frame : frames) {
          out.append("  at ").append(frame).append('\n');
        }
      }
    });
    return out.toString();
  }

  private static long since(long start) {
    return System.currentTimeMillis() - start;
  }

  private static String named(Option<String> className, String name) {
    return className.isDefined() ? className.get() : name;
  }

  /** Returns the message, followed by each cause with its first frames. */
  private static String text(String message, Option<Throwable> thrown) {
    StringBuilder out = new StringBuilder(head(String.valueOf(message)));
    Throwable cause = thrown.isDefined() ? thrown.get() : null;
    for (int depth = 0; cause != null && depth < MAX_CAUSES; depth++, cause = cause.getCause()) {
      out.append('\n').append(cause.getClass().getName());
      if (depth > 0) {
        out.append(": ").append(head(String.valueOf(cause.getMessage())));
      }
      StackTraceElement[] frames = cause.getStackTrace();
      for (int i = 0; i < Math.min(frames.length, MAX_FRAMES); i++) {
        out.append("\n  at ").append(frames[i]);
      }
    }
    return out.toString();
  }

  private static String head(String text) {
    return text.length() <= MESSAGE_LIMIT ? text : text.substring(0, MESSAGE_LIMIT) + " ...";
  }

  private synchronized void line(String event, String suite, String test, long ms, String message) {
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("event", event);
    fields.put("suite", suite);
    fields.put("test", test);
    fields.put("ms", ms);
    fields.put("message", message);
    try {
      log.println(json.writeValueAsString(fields));
    } catch (IOException e) {
      throw new IllegalStateException("cannot write an event as JSON", e);
    }
  }
}
