package org.apache.spark.sql.penstock.sharding

import java.util.concurrent.{CyclicBarrier, Executors, TimeUnit}

import scala.util.{Success, Try}

import org.apache.spark.SparkEnv
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{CollationAwareMurmur3Hash, UnsafeProjection}
import org.apache.spark.sql.penstock.routing.LocalSpark

import io.penstock.sharding.Layout
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.tags.Slow

@Slow
class ShardHashSuite extends AnyFunSuite with LocalSpark {
  private lazy val tasks = Executors.newFixedThreadPool(2)

  override protected def afterAll(): Unit = {
    tasks.shutdownNow()
    super.afterAll()
  }

  /** Serializes and deserializes a value, as Spark does when it sends the value to a task. */
  private def shipped[A](value: A): A = {
    val serializer = SparkEnv.get.closureSerializer.newInstance()
    serializer.deserialize[(A, Int)](serializer.serialize((value, 0)))._1
  }

  /** Hashes as Spark computes them, without rows for which Spark fails or gives different results. */
  private def expected(key: FunctionKey): Seq[(InternalRow, Int)] = {
    def hashes() = {
      val hash = UnsafeProjection.create(Seq(new CollationAwareMurmur3Hash(shipped(key.keys))))
      key.rows.map(row => Try(hash(row).getInt(0)).toOption)
    }
    key.rows.zip(hashes().zip(hashes())).collect {
      case (row, (Some(hash), again)) if again.contains(hash) => row -> hash
    }
  }

  /** Differences between the hashes that two concurrent tasks compute and the expected ones. */
  private def differences(key: FunctionKey, rounds: Int): Seq[String] = {
    val (rows, hashes) = expected(key).unzip
    val start = new CyclicBarrier(2)
    val found = (0 until 2).map { task =>
      tasks.submit { () =>
        start.await(1, TimeUnit.MINUTES)
        val made = Try(ShardHash(shipped(key.keys), Layout(1 << 20)))
        def got(i: Int) = made.flatMap(hash => Try(hash.ofKey(rows(i))))
        val order = if (task == 0) rows.indices else rows.indices.reverse
        Iterator.fill(rounds)(order).flatten.map(i => (i, got(i), hashes(i))).collectFirst {
          case (i, got, expected) if got != Success(expected) => s"task $task, row $i: $got instead of $expected"
        }
      }
    }
    found.flatMap(_.get(1, TimeUnit.MINUTES)).map(d => s"${key.sql}: $d")
  }

  test("with two concurrent tasks, every Spark function allowed in a key has its usual hash") {
    val keys = new FunctionKeys(spark)
    val made = keys.functions.map(f => f -> keys.of(f))
    val wrong = made.flatMap(_._2).flatMap(differences(_, rounds = 20))
    assert(wrong.isEmpty, wrong.mkString("\n"))
    // Fails if a new version of Spark reduces the coverage.
    val covered = made.filter(_._2.nonEmpty).map(_._1)
    assert(covered.size >= 250, s"only ${covered.size} of ${keys.functions.size} functions became keys")
    val withWriters = Seq("to_csv", "from_csv", "to_json", "from_json", "get_json_object", "to_xml", "xpath_string")
    assert(withWriters.filterNot(covered.contains).isEmpty)
  }

  test("with two concurrent tasks, a key may contain a user-defined function") {
    spark.udf.register("joined", (words: Seq[String]) => words.mkString("+"))
    val keys = new FunctionKeys(spark).ofExample("SELECT joined(array('a1', 'b2', 'c3'))")
    assert(keys.nonEmpty)
    val wrong = keys.toSeq.flatMap(differences(_, rounds = 500))
    assert(wrong.isEmpty, wrong.mkString("\n"))
  }
}
