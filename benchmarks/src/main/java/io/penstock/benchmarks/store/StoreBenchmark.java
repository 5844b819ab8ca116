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
 * One call of a state store, in ns. Keys come in an order that has nothing to do with that of their bytes. What an
 * invocation writes it throws away, so that the next one finds the store at the same version.
 */
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class StoreBenchmark {
  private static final int CALLS = 50_000;
  private static final int SCANS = 2_000;
  private static final int CHANGES_OF_A_COMMIT = 1_000;

  /** A store that is there before JMH begins. */
  @State(Scope.Benchmark)
  public abstract static class Found {
    @Param({"none"})
    public String side;

    StoreSetup setup;

    /** How its keys are found. */
    abstract StoreShape shape();

    int size() {
      return StoreSetups.Keys();
    }

    @Setup(Level.Trial)
    public void find() {
      setup = StoreSetups.named(StoreSetups.nameOf(side, shape(), size()));
      prepare();
    }

    /** What is done once. */
    void prepare() {}
  }

  /** A store that is only read: open all the time. */
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

  /** A store that throws away what an invocation has written. */
  public abstract static class Written extends Found {
    @Setup(Level.Invocation)
    public void begin() {
      setup.open();
      change();
    }

    /** What is written before time is taken. */
    void change() {}

    @TearDown(Level.Invocation)
    public void end() {
      setup.close();
    }
  }

  /** A store whose keys are found by themselves, to be read. */
  public static class Whole extends Read {
    @Override
    StoreShape shape() {
      return StoreShape.whole();
    }
  }

  /** The same, to be written. */
  public static class WholeWritten extends Written {
    @Override
    StoreShape shape() {
      return StoreShape.whole();
    }
  }

  /** A store whose keys share their first field, ten at a time. */
  public static class Prefixed extends Read {
    @Override
    StoreShape shape() {
      return StoreShape.prefixed();
    }
  }

  /** A store whose keys are in order. */
  public static class Ordered extends Read {
    @Override
    StoreShape shape() {
      return StoreShape.ordered();
    }
  }

  /** A store with changes that wait for their commit. */
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

  /** Ten entries that share a prefix. */
  @Benchmark
  @OperationsPerInvocation(SCANS)
  public void prefixScan(Prefixed store, Blackhole hole) {
    for (int i = 0; i < SCANS; i++) {
      hole.consume(store.setup.scanPrefix(i));
    }
  }

  /** A hundred entries in the order of their keys. */
  @Benchmark
  @OperationsPerInvocation(SCANS)
  public void rangeScan(Ordered store, Blackhole hole) {
    for (int i = 0; i < SCANS; i++) {
      hole.consume(store.setup.scanRange(i));
    }
  }

  /** From the commit of 1,000 changes to the next version, open. */
  @Benchmark
  public void commit(Changed store) {
    store.setup.commit();
    store.setup.open();
  }
}
