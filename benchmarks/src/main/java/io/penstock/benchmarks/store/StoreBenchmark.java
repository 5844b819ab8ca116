package io.penstock.benchmarks.store;

import java.util.concurrent.TimeUnit;

import org.apache.spark.sql.penstock.benchmarks.StoreSetup;
import org.apache.spark.sql.penstock.benchmarks.StoreSetups;
import org.apache.spark.sql.penstock.benchmarks.StoreShape;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.infra.Blackhole;

/**
 * Time of one call of a state store, in ns. The order of keys is independent of the order of their bytes. Each
 * invocation discards what it writes, so that the next one starts from the same version.
 */
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class StoreBenchmark {
  private static final int CALLS = 50_000;
  private static final int SCANS = 2_000;
  private static final int CHANGES_OF_A_COMMIT = 1_000;

  /** A store that was created before JMH starts. */
  @State(Scope.Benchmark)
  public abstract static class Found {
    @Param({"none"})
    public String side;

    StoreSetup setup;

    /** Shape of the store's keys. */
    abstract StoreShape shape();

    int size() {
      return StoreSetups.Keys();
    }

    @Setup(Level.Trial)
    public void find() {
      setup = StoreSetups.named(StoreSetups.nameOf(side, shape(), size()));
      prepare();
    }

    /** Prepares the store, once per trial. */
    void prepare() {}
  }

  /** A store that is only read. It stays open for the whole trial. */
  public abstract static class Read extends Found {
    @Override
    void prepare() {
      setup.open();
    }

    @TearDown(Level.Trial)
    public void end() {
      setup.close();
    }
  }

  /** A store that discards the changes of each invocation. */
  public abstract static class Written extends Found {
    @Setup(Level.Invocation)
    public void begin() {
      setup.open();
      change();
    }

    /** Writes changes before the measured call. */
    void change() {}

    @TearDown(Level.Invocation)
    public void end() {
      setup.close();
    }
  }

  /** A store that is read by whole keys. */
  public static class Whole extends Read {
    @Override
    StoreShape shape() {
      return StoreShape.whole();
    }
  }

  /** A store that is written by whole keys. */
  public static class WholeWritten extends Written {
    @Override
    StoreShape shape() {
      return StoreShape.whole();
    }
  }

  /** A store in which ten keys each share their first field. */
  public static class Prefixed extends Read {
    @Override
    StoreShape shape() {
      return StoreShape.prefixed();
    }
  }

  /** A store with ordered keys. */
  public static class Ordered extends Read {
    @Override
    StoreShape shape() {
      return StoreShape.ordered();
    }
  }

  /** A store with uncommitted changes. */
  public static class Changed extends Written {
    @Param({"0"})
    public int keys;

    @Override
    StoreShape shape() {
      return StoreShape.whole();
    }

    @Override
    int size() {
      return keys;
    }

    @Override
    void change() {
      for (int i = 0; i < CHANGES_OF_A_COMMIT; i++) {
        setup.put(i);
      }
    }
  }

  @Benchmark
  @OperationsPerInvocation(CALLS)
  public void get(Whole store, Blackhole hole) {
    for (int i = 0; i < CALLS; i++) {
      hole.consume(store.setup.get(i));
    }
  }

  @Benchmark
  @OperationsPerInvocation(CALLS)
  public void put(WholeWritten store) {
    for (int i = 0; i < CALLS; i++) {
      store.setup.put(i);
    }
  }

  @Benchmark
  @OperationsPerInvocation(CALLS)
  public void remove(WholeWritten store) {
    for (int i = 0; i < CALLS; i++) {
      store.setup.remove(i);
    }
  }

  /** Scans ten entries that share a prefix. */
  @Benchmark
  @OperationsPerInvocation(SCANS)
  public void prefixScan(Prefixed store, Blackhole hole) {
    for (int i = 0; i < SCANS; i++) {
      hole.consume(store.setup.scanPrefix(i));
    }
  }

  /** Scans a hundred entries in the order of their keys. */
  @Benchmark
  @OperationsPerInvocation(SCANS)
  public void rangeScan(Ordered store, Blackhole hole) {
    for (int i = 0; i < SCANS; i++) {
      hole.consume(store.setup.scanRange(i));
    }
  }

  /** Commits 1,000 changes and opens the next version. */
  @Benchmark
  public void commit(Changed store) {
    store.setup.commit();
    store.setup.open();
  }
}
