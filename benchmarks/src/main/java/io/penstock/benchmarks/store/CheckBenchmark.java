package io.penstock.benchmarks.store;

import java.util.concurrent.TimeUnit;

import org.apache.spark.sql.penstock.benchmarks.Checks;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** Checks of the state store: that the shard of each key belongs to the task, and the checksum of all bytes. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@State(Scope.Thread)
public class CheckBenchmark {
  private static final int BYTES = 1 << 20;

  private final Checks checks = new Checks(BYTES);

  /** The access check of one key. */
  @Benchmark
  public int access() {
    return checks.shardOfNextKey();
  }

  /** The checksum of one byte. */
  @Benchmark
  @OperationsPerInvocation(BYTES)
  public int checksum() {
    return checks.checksum();
  }
}
