// The JVM side of Penstock: one source tree, and one jar per Spark minor version. Use sbt -Dspark=4.2 (default) or
// -Dspark=4.3.

val sparkMinor = sys.props.getOrElse("spark", "4.2")

/** Full Spark version of each supported minor version. */
val sparkVersions = Map("4.2" -> "4.2.0", "4.3" -> "4.3.0")
val sparkVersion = sparkVersions.getOrElse(
  sparkMinor,
  sys.error(s"-Dspark=$sparkMinor is not supported; allowed: ${sparkVersions.keys.toSeq.sorted.mkString(", ")}")
)

/** Folder of Spark's jars. Spark 4.3.0 is not on Maven Central, so its jars come from the PySpark distribution. */
val sparkJars: Option[File] = sys.props.get("spark.jars.dir").map(file)

ThisBuild / organization := "io.penstock"
ThisBuild / licenses := Seq(License.Apache2)
ThisBuild / version := IO.read(file("VERSION")).trim
ThisBuild / scalaVersion := "2.13.18"

lazy val common = Seq(
  target := baseDirectory.value / "target" / s"spark-$sparkMinor",
  scalacOptions ++= Seq(
    "-deprecation",
    "-feature",
    "-unchecked",
    "-Xlint:_,-missing-interpolator",
    "-Werror",
    "-release",
    "17"
  ),
  javacOptions ++= Seq("--release", "17"),
  Compile / doc / sources := Nil,
  libraryDependencies ++= {
    if (sparkJars.isDefined) Nil
    else Seq("org.apache.spark" %% "spark-sql" % sparkVersion % Provided)
  },
  Compile / unmanagedJars ++= sparkJars.toSeq.flatMap(d => (d * "*.jar").classpath),
  Test / unmanagedJars ++= sparkJars.toSeq.flatMap(d => (d * "*.jar").classpath),
  libraryDependencies ++= Seq(
    "org.scalatest" %% "scalatest-funsuite" % "3.2.19" % Test,
    "org.scalacheck" %% "scalacheck" % "1.19.0" % Test,
    "com.tngtech.archunit" % "archunit" % "1.4.1" % Test
  ),
  Test / fork := true,
  Test / parallelExecution := false,
  Test / testForkedParallel := false,
  Test / baseDirectory := (ThisBuild / baseDirectory).value,
  Test / testOptions += Tests.Argument(TestFrameworks.ScalaTest, "-oD"),
  Test / javaOptions ++= sparkJavaOptions ++ Seq(
    "-Xmx3g",
    "-Xss4m",
    "-XX:+UseParallelGC",
    s"-Dpenstock.spark.minor=$sparkMinor"
  ),
  // Settings of the tests, such as their seed, are passed to sbt and forwarded to the JVM of the tests.
  Test / javaOptions ++= sys.props.toSeq.collect {
    case (key, value) if key.startsWith("penstock.test.") => s"-D$key=$value"
  }
)

/** Limits a brief run to the suites that run Spark and may depend on its version. */
lazy val briefly = Test / testOptions ++= {
  if (sys.props.get("penstock.test.brief").contains("true"))
    Seq(
      Tests.Filter(_.startsWith("org.apache.spark.")),
      Tests.Argument(TestFrameworks.ScalaTest, "-l", "io.penstock.SameOnEverySpark")
    )
  else Nil
}

/** Options that Spark's own launcher adds on Java 17. */
lazy val sparkJavaOptions =
  Seq(
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic"
  ).map(p => s"--add-opens=java.base/$p=ALL-UNNAMED") ++
    Seq("jdk.internal.ref", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar")
      .map(p => s"--add-opens=java.base/$p=ALL-UNNAMED") ++
    Seq("-Djdk.reflect.useDirectMethodHandle=false", "-Dio.netty.tryReflectionSetAccessible=true")

lazy val jvm = project
  .in(file("jvm"))
  .settings(common, briefly)
  .settings(
    name := s"penstock-jvm-spark-$sparkMinor",
    Compile / unmanagedSourceDirectories += baseDirectory.value / "shims" / s"spark-$sparkMinor",
    Test / unmanagedSourceDirectories += baseDirectory.value / "shims" / s"spark-$sparkMinor-tests",
    Compile / resourceGenerators += Def.task {
      val file = (Compile / resourceManaged).value / "io" / "penstock" / "build.properties"
      IO.write(file, s"version=${version.value}\nspark=$sparkMinor\n")
      Seq(file)
    }.taskValue
  )

/** The class that `spark.plugins` names. It is also a separate jar, which finds the jar for the running Spark. */
lazy val bridge = project
  .in(file("plugin/bridge"))
  .settings(common)
  .settings(
    name := "penstock-bridge",
    Compile / packageBin / artifactName := { (_, m, a) => s"${a.name}-${m.revision}.jar" },
    // The jar contains these classes in a folder, and the project does not depend on them: see SessionsWithoutPlugin.
    Compile / packageBin / mappings ++= (absent / Compile / products).value
      .flatMap(Path.allSubpaths)
      .collect { case (file, path) if file.isFile => file -> s"absent/$path" }
  )

/** The class that replaces the state store provider in applications without the plugin. */
lazy val absent = project
  .in(file("plugin/absent"))
  .settings(common)
  .settings(name := "penstock-absent", publish / skip := true)

lazy val plugin = project
  .in(file("plugin"))
  .dependsOn(bridge, jvm % "compile->compile;test->test")
  .settings(common)
  .settings(
    name := s"penstock-spark-$sparkMinor",
    assembly / assemblyJarName := s"penstock-spark-${sparkMinor}_2.13-${version.value}.jar",
    assembly / assemblyOption ~= { _.withIncludeScala(false) },
    // Jars from a folder cannot be marked as Provided, so without this they would be part of our jar.
    assembly / assemblyExcludedJars := (assembly / fullClasspath).value
      .filter(entry => sparkJars.exists(dir => entry.data.getParentFile == dir))
  )

/** Class path of the Kafka broker, which tests start as a separate process. */
lazy val KafkaBroker = config("kafkaBroker").hide

/** Copies the jars of a Kafka broker and of Spark's connector into a folder: `make kafka-jars`. */
lazy val kafkaJars = taskKey[Unit]("copies the jars of a Kafka broker and of Spark's connector into .work/kafka")

lazy val integration = project
  .in(file("tests/integration"))
  .dependsOn(plugin, jvm % "test->test")
  .configs(KafkaBroker)
  .settings(common, briefly)
  .settings(
    name := "penstock-integration",
    publish / skip := true,
    ivyConfigurations += KafkaBroker,
    libraryDependencies ++= Seq(
      "org.apache.kafka" %% "kafka" % "3.9.2" % KafkaBroker,
      "org.slf4j" % "slf4j-simple" % "1.7.36" % KafkaBroker
    ),
    // Spark's connector is published only for the minor versions of Spark that are. Its helper for delegation tokens,
    // which the tests do not use, is not published in that version, but an older version is compatible.
    libraryDependencies ++= {
      val helper = "spark-token-provider-kafka-0-10"
      if (sparkJars.isDefined) Nil
      else Seq(
        "org.apache.spark" %% "spark-sql-kafka-0-10" % sparkVersion % Test exclude (
          "org.apache.spark",
          s"${helper}_2.13"
        ),
        "org.apache.spark" %% helper % "4.0.0" % Test intransitive ()
      )
    },
    kafkaJars := {
      val resolved = update.value
      val connector = moduleFilter(name = "spark-sql-kafka-*" | "spark-token-provider-kafka-*") |
        moduleFilter(name = "kafka-clients" | "commons-pool2")
      val folders = Map(
        "broker" -> resolved.select(configurationFilter(KafkaBroker.name)),
        "connector" -> resolved.select(configurationFilter(Test.name), connector, artifactFilter())
      )
      for ((name, jars) <- folders) {
        val folder = (ThisBuild / baseDirectory).value / ".work" / "kafka" / name
        IO.delete(folder)
        IO.copy(jars.distinct.map(jar => jar -> folder / jar.getName))
      }
    },
    Test / javaOptions += {
      val jars = update.value.select(configurationFilter(KafkaBroker.name)).distinct
      s"-Dpenstock.test.kafka.classpath=${jars.mkString(java.io.File.pathSeparator)}"
    },
    // Executor processes start with the jars of SPARK_HOME, which are none here, and with the class path that a test
    // sets.
    Test / envVars := {
      val home = target.value / "spark-home"
      IO.createDirectory(home / "jars")
      Map("SPARK_HOME" -> home.getAbsolutePath, "SPARK_SCALA_VERSION" -> scalaBinaryVersion.value)
    }
  )

/** Programs that `penstock bench` runs to measure. */
lazy val benchmarks = project
  .in(file("benchmarks"))
  .dependsOn(plugin)
  .settings(common)
  .settings(
    name := s"penstock-benchmarks-spark-$sparkMinor",
    publish / skip := true,
    libraryDependencies ++= Seq(
      "org.openjdk.jmh" % "jmh-core" % "1.37",
      "org.openjdk.jmh" % "jmh-generator-annprocess" % "1.37" % Provided
    ),
    // The libraries that the programs need besides Spark are in the folder `lib` next to their jar.
    Compile / packageBin := {
      val jar = (Compile / packageBin).value
      val needed = update.value.select(moduleFilter("org.openjdk.jmh", "jmh-core") | moduleFilter("net.sf.jopt-simple"))
      IO.copy(needed.distinct.map(f => f -> jar.getParentFile / "lib" / f.getName))
      jar
    }
  )

lazy val root =
  project.in(file(".")).aggregate(jvm, absent, bridge, plugin, integration, benchmarks).settings(publish / skip := true)
