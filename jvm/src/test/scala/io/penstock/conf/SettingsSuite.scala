package io.penstock.conf

import scala.util.Try

import io.penstock.PropertyChecks
import io.penstock.errors.PenstockException
import io.penstock.routing.{ChaosShardPolicy, StaticPolicy, TasksChoice}
import org.scalacheck.Prop.propBoolean
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class SettingsSuite extends AnyFunSuite with PropertyChecks {
  private def error(body: => Any): PenstockException = intercept[PenstockException](body)

  test("names are unique and every default is an allowed value") {
    assert(Settings.all.map(_.name).distinct.size == Settings.all.size)
    def roundTrip[T](s: Setting[T]): Unit = assert(s.kind.read(s.kind.write(s.default)).contains(s.default), s.key)
    Settings.all.foreach(roundTrip(_))
  }

  test("shards accepts every integer of its range and nothing else") {
    val kind = Settings.Shards.kind
    check(Prop.forAll(Gen.choose(1, 65536))(n => kind.read(n.toString).contains(n)))
    check(Prop.forAll(Gen.oneOf(Gen.choose(Int.MinValue, 0), Gen.choose(65537, Int.MaxValue)))(n =>
      kind.read(n.toString).isEmpty
    ))
    Seq("", "many", "2.5", "65537", "0", "99999999999").foreach(t => assert(kind.read(t).isEmpty, t))
  }

  test("theta must be above 1 and at most 10") {
    val kind = Settings.Theta.kind
    assert(kind.read("1.05").contains(1.05) && kind.read("10").contains(10.0))
    Seq("1", "1.0", "0.9", "10.01", "NaN", "Infinity", "-2", "x", "").foreach(t => assert(kind.read(t).isEmpty, t))
  }

  test("a policy is a word, with a seed where the policy takes one") {
    assert(Settings.Policy.kind.read("static").contains(StaticPolicy))
    assert(Settings.Policy.kind.read("mintable").exists(_.plannedBy.contains("minTable")))
    assert(Settings.Tasks.kind.read("CORES").contains(TasksChoice.Cores))
    check(Prop.forAll { (seed: Long) =>
      val choice = new ChaosShardPolicy(seed)
      val text = Settings.Policy.kind.write(choice)
      (text == s"chaos($seed)") && Settings.Policy.kind.read(text).contains(choice) &&
      Settings.Tasks.kind.read(text).contains(TasksChoice.Chaos(seed))
    })
    Seq("chaos", "chaos()", "chaos(x)", "chaos(1", "chaos(1)x", "hybrid(1)", "hybridd").foreach(t =>
      assert(Settings.Policy.kind.read(t).isEmpty, t)
    )
  }

  test("sizes are written as in Spark, up to a bound") {
    val kind = Settings.StateInlineBytes.kind
    Seq("0" -> 0L, "17" -> 17L, "4k" -> 4096L, "1g" -> (1L << 30)).foreach { case (text, bytes) =>
      assert(kind.read(text).contains(bytes), text)
    }
    Seq("", "-1", "1073741825", "2g", "4.5m", "4x").foreach(t => assert(kind.read(t).isEmpty, t))
    assert(kind.allowed.contains("at most 1g"))
  }

  test("tasks accepts a number as well as a word") {
    val kind = Settings.Tasks.kind
    check(Prop.forAll(Gen.choose(1, 65536)) { n =>
      kind.read(n.toString).contains(TasksChoice.Fixed(n)) && kind.write(TasksChoice.Fixed(n)) == n.toString
    })
    Seq("0", "-1", "65537", "2.5", "16 tasks").foreach(t => assert(kind.read(t).isEmpty, t))
    assert(kind.allowed.contains("or an integer from 1 to 65536"))
  }

  test("only settings that take effect at the next batch can be changed in a running query") {
    val started = QuerySettings.resolve(Map("penstock.theta" -> "1.2"), Map.empty, Map.empty)
    val later = started.updated("penstock.tasks", "16").updated("penstock.theta", "2")
    assert((later.tasks, later.theta, later.policy) == ((TasksChoice.Fixed(16), 2.0, started.policy)))
    def refused(option: String, text: String) = intercept[PenstockException](started.updated(option, text))
    val policy = refused("penstock.policy", "static")
    assert(policy.errorClass == "PENSTOCK_NOT_AT_RUN_TIME")
    Seq("penstock.policy=static", "query start", "penstock.tasks, penstock.theta").foreach(word =>
      assert(policy.detail.contains(word), policy)
    )
    assert(refused("penstock.tasks", "many").errorClass == "PENSTOCK_INVALID_SETTING")
    assert(refused("penstock.task", "2").errorClass == "PENSTOCK_UNKNOWN_SETTING")
  }

  test("heap limits are sizes as written in Spark, or percentages") {
    val kind = Settings.StateMaxBytes.kind
    def bytes(text: String): Option[Long] = kind.read(text).map(_.bytes(1000L))
    Seq("1" -> 1L, "17b" -> 17L, "4k" -> 4096L, "4KB" -> 4096L, "512m" -> (512L << 20), "4g" -> (4L << 30)).foreach {
      case (text, expected) => assert(bytes(text).contains(expected), text)
    }
    assert(bytes("1%").contains(10L) && bytes("100%").contains(1000L))
    Seq(
      "",
      "0",
      "0g",
      "-1",
      "4.5g",
      "4x",
      "4gg",
      "4bb",
      "g",
      "9000p",
      "99999999999999999999",
      "0%",
      "101%",
      "1.5%",
      "%"
    )
      .foreach(t => assert(kind.read(t).isEmpty, t))
    check(Prop.forAll(Gen.choose(1L, Long.MaxValue))(n => ByteSize.read(ByteSize.write(n)).contains(n)))
    check(Prop.forAll(Gen.choose(0, 62))(n => ByteSize.read(ByteSize.write(1L << n)).contains(1L << n)))
    assert(ByteSize.write(4L << 30) == "4g" && ByteSize.write(1536L) == "1536" && ByteSize.write(0L) == "0")
  }

  test("a setting is documented as changeable exactly if a running query accepts it") {
    def changeable[T](s: Setting[T]): Boolean =
      Try(QuerySettings.default.updated(s.option, s.kind.write(s.default))).isSuccess
    Settings.all.foreach(s => assert(s.effect.changeableAtRunTime == changeable(s), s.key))
  }

  test("a setting has the same names everywhere; only run-time updates also accept its bare name") {
    Seq("spark.penstock.theta", "penstock.theta").foreach { name =>
      val entry = Map(name -> "1.4")
      assert(QuerySettings.resolve(entry, Map.empty, Map.empty).theta == 1.4, name)
      assert(QuerySettings.resolve(Map.empty, entry, Map.empty).theta == 1.4, name)
      assert(QuerySettings.resolve(Map.empty, entry, entry).origin(Settings.Theta).contains(Scope.Application), name)
      assert(Settings.lookedUp(Settings.Theta)(entry.get) == 1.4, name)
    }
    Seq("spark.penstock.theta", "penstock.theta", "theta", "Penstock.Theta").foreach(name =>
      assert(QuerySettings.default.updated(name, "1.4").theta == 1.4, name)
    )
    // An option `theta` may belong to the sink.
    assert(QuerySettings.resolve(Map("theta" -> "1.4", "mode" -> "append"), Map.empty, Map.empty).theta == 1.003)
  }

  test("options with the bare name of a setting are reported as possibly meant for Penstock") {
    val options = Map("theta" -> "1.4", "Tasks" -> "auto", "mode" -> "append", "shards" -> "16", "path" -> "x")
    assert(QuerySettings.unprefixed(options + ("penstock.theta" -> "1.4")) == Seq("Tasks=auto", "theta=1.4"))
  }

  test("an unknown key gets a suggestion in the same spelling") {
    val names = Seq("spark.penstock.teta" -> "spark.penstock.theta", "penstock.teta" -> "penstock.theta")
    names.foreach { case (wrong, right) =>
      Seq(
        error(QuerySettings.resolve(Map(wrong -> "1"), Map.empty, Map.empty)),
        error(QuerySettings.resolve(Map.empty, Map(wrong -> "1"), Map.empty)),
        error(Settings.checkApplication(Map(wrong -> "1")))
      ).foreach(e => assert(e.errorClass == "PENSTOCK_UNKNOWN_SETTING" && e.detail.contains(s"Did you mean $right?")))
    }
    assert(error(QuerySettings.default.updated("teta", "1")).detail.contains("Did you mean theta?"))
    assert(!error(QuerySettings.default.updated("spread", "1")).detail.contains("Did you mean"))
  }

  test("a setting given twice in one place with different values is rejected") {
    val twice = Map("spark.penstock.theta" -> "1.4", "penstock.theta" -> "1.5")
    Seq(
      error(QuerySettings.resolve(twice, Map.empty, Map.empty)),
      error(QuerySettings.resolve(Map.empty, twice, Map.empty)),
      error(Settings.checkApplication(twice))
    ).foreach { e =>
      assert(e.errorClass == "PENSTOCK_INVALID_SETTING")
      assert(e.detail.contains("spark.penstock.theta=1.4") && e.detail.contains("penstock.theta=1.5"))
    }
    val equal = twice + ("penstock.theta" -> "1.4")
    assert(QuerySettings.resolve(equal, equal, Map.empty).theta == 1.4)
  }

  test("an error for an unknown key names its value, the nearest key and where keys are listed") {
    val e = error(Settings.checkApplication(Map("spark.penstock.teta" -> "1.1", "spark.app.name" -> "x")))
    assert(e.errorClass == "PENSTOCK_UNKNOWN_SETTING")
    assert(e.detail.contains("spark.penstock.teta=1.1") && e.detail.contains("Did you mean spark.penstock.theta?"))
    assert(e.detail.contains("penstock config"))
    assert(Settings.all.count(s => e.detail.contains(s.key)) == 1)
  }

  test("an error for an invalid value names its key, its place and the allowed values") {
    val e = error(Settings.checkApplication(Map("spark.penstock.shards" -> "70000")))
    assert(e.errorClass == "PENSTOCK_INVALID_SETTING")
    Seq("spark.penstock.shards", "'70000'", "an integer from 1 to 65536", "256").foreach(t =>
      assert(e.detail.contains(t), e.detail)
    )
    val q = error(QuerySettings.resolve(Map("penstock.mode" -> "of"), Map.empty, Map.empty))
    assert(q.errorClass == "PENSTOCK_INVALID_SETTING")
    Seq("penstock.mode", "'of'", "the query's options", "off, observe, on").foreach(t =>
      assert(q.detail.contains(t), q.detail)
    )
  }

  test("a query's option overrides the session, the application and the default, in this order") {
    val key = Settings.Theta.key
    val application = Map(key -> "1.2", "spark.master" -> "local")
    assert(QuerySettings.resolve(Map.empty, Map.empty, Map.empty).theta == 1.003)
    assert(QuerySettings.resolve(Map.empty, Map.empty, application).theta == 1.2)
    assert(QuerySettings.resolve(Map.empty, application + (key -> "1.3"), application).theta == 1.3)
    val all = QuerySettings.resolve(Map("penstock.theta" -> "1.4", "path" -> "/x"), Map(key -> "1.3"), application)
    assert(all.theta == 1.4)
    assert(all.origin(Settings.Theta).contains(Scope.Query) && all.origin(Settings.Mode).isEmpty)
  }

  test("query options are case-insensitive, as Spark lower-cases them") {
    assert(QuerySettings.resolve(Map("Penstock.Mode" -> "Observe"), Map.empty, Map.empty).mode == Mode.Observe)
  }

  test("application settings are rejected elsewhere, and the error says where to set them") {
    val e = error(QuerySettings.resolve(Map("penstock.shards" -> "16"), Map.empty, Map.empty))
    assert(e.errorClass == "PENSTOCK_SETTING_SCOPE" && e.detail.contains("--conf spark.penstock.shards=16"))
    val s = error(QuerySettings.resolve(Map.empty, Map("spark.penstock.shards" -> "16"), Map.empty))
    assert(s.errorClass == "PENSTOCK_SETTING_SCOPE" && s.detail.contains("the session's configuration"))
  }

  test("a session may repeat the application's entries") {
    val application = Map("spark.penstock.shards" -> "16")
    val settings = QuerySettings.resolve(Map.empty, application, application)
    assert(settings.shards == 16 && settings.origin(Settings.Shards).contains(Scope.Application))
  }

  test("a single setting is read from the application's configuration") {
    assert(Settings.application(Settings.Shards, Map("spark.penstock.shards" -> " 8 ")) == 8)
    assert(Settings.application(Settings.Mode, Map.empty) == Mode.On)
  }

  test("edit distance is symmetric, bounded and zero only for equal texts") {
    assert(EditDistance("kitten", "sitting") == 3 && EditDistance("", "abc") == 3 && EditDistance("a", "a") == 0)
    check(Prop.forAll { (a: String, b: String) =>
      val d = EditDistance(a, b)
      d == EditDistance(b, a) && d <= math.max(a.length, b.length) && ((d == 0) == (a == b))
    })
  }
}
