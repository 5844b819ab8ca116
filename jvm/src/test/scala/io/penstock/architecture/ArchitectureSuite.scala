package io.penstock.architecture

import com.tngtech.archunit.base.DescribedPredicate
import com.tngtech.archunit.core.domain.JavaClass
import com.tngtech.archunit.core.domain.JavaClass.Predicates.{assignableTo, resideInAnyPackage}
import com.tngtech.archunit.core.importer.{ClassFileImporter, ImportOption}
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses
import com.tngtech.archunit.lang.{ArchCondition, ArchRule, ConditionEvents, SimpleConditionEvent}
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices
import com.tngtech.archunit.library.dependencies.{SliceAssignment, SliceIdentifier}
import io.penstock.context.Component
import io.penstock.control.Planner
import org.scalatest.funsuite.AnyFunSuite

/** Rules of docs/architecture.md, checked on the compiled classes. */
class ArchitectureSuite extends AnyFunSuite {
  private val sparkPrivate = "org.apache.spark.sql.penstock.."
  private val inSpark = Seq(sparkPrivate, "org.apache.spark.scheduler.penstock..")

  /** Classes of `io.penstock` by which Spark or a user enters, and which therefore know the other half. */
  private val entryPoints = Set("io.penstock.Penstock", "io.penstock.PenstockStateStoreProvider")

  private lazy val classes = new ClassFileImporter()
    .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
    .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_JARS)
    .withImportOption(location => !location.contains("test-classes"))
    .importPackages("io.penstock", "org.apache.spark.sql.penstock", "org.apache.spark.scheduler.penstock")

  private def check(rule: ArchRule): Unit = rule.check(classes)

  private def isEntryPoint: DescribedPredicate[JavaClass] = DescribedPredicate.describe(
    "are entry points",
    (c: JavaClass) => entryPoints(c.getName.takeWhile(_ != '$'))
  )

  test("the rules see the classes") {
    assert(classes.size > 500 && entryPoints.forall(classes.contain(_)))
  }

  test("packages have no cycles") {
    val byPackage = new SliceAssignment {
      override def getIdentifierOf(c: JavaClass): SliceIdentifier = SliceIdentifier.of(c.getPackageName)
      override def getDescription: String = "every package"
    }
    check(slices.assignedFrom(byPackage).should.beFreeOfCycles)
  }

  test("io.penstock reaches into Spark's packages only from its entry points") {
    check(
      noClasses.that(resideInAnyPackage("io.penstock..")).and(DescribedPredicate.not(isEntryPoint))
        .should.dependOnClassesThat(resideInAnyPackage(inSpark: _*))
    )
  }

  test("decisions do no I/O") {
    val io =
      Seq("java.nio.file..", "java.nio.channels..", "java.net..", "org.apache.hadoop..", "io.penstock.sidecars..")
    check(
      noClasses.that(resideInAnyPackage("io.penstock.routing..", "io.penstock.sharding..", "io.penstock.telemetry.."))
        .and(DescribedPredicate.not(DescribedPredicate.describe(
          "read the time in the run queue",
          (c: JavaClass) => c.getName.startsWith("io.penstock.telemetry.Interruptions")
        )))
        .should.dependOnClassesThat(resideInAnyPackage(io: _*))
    )
  }

  test("transfer knows nothing of shards") {
    check(
      noClasses.that(resideInAnyPackage("io.penstock.sidecars.transfer.."))
        .should.dependOnClassesThat(resideInAnyPackage(inSpark ++ Seq("io.penstock.state..", "io.penstock.sharding..")
          ++ Seq("io.penstock.routing..", "io.penstock.control.."): _*))
    )
  }

  /** Objects with mutable state that belongs to no application. Each says why. */
  private val outlivesApplications = Set("RowBuffer$", "ShardTravel$", "WasteLimits$")

  /** Objects with registries and properties that are complete when the object has been loaded. */
  private val constant = Set("Metrics$", "Settings$", "SparkVersions$")

  test("objects hold no mutable state unless a context owns them") {
    val holdNothing = new ArchCondition[JavaClass]("hold no mutable state") {
      override def check(module: JavaClass, events: ConditionEvents): Unit =
        MutableFields.of(module).foreach { field =>
          events.add(SimpleConditionEvent.violated(
            module,
            s"${field.getFullName} is mutable and outlives applications"
          ))
        }
    }
    check(
      classesThat("are objects", MutableFields.isObject)
        .and(DescribedPredicate.not(assignableTo(classOf[Component])))
        .and(DescribedPredicate.not(DescribedPredicate.describe(
          "known",
          (c: JavaClass) => (outlivesApplications ++ constant)(lastNameOf(c))
        )))
        .should(holdNothing)
    )
    (outlivesApplications ++ constant).foreach { name =>
      val found = classes.stream().filter(lastNameOf(_) == name).findFirst().get()
      assert(MutableFields.of(found).nonEmpty, s"$name has no mutable state any more")
    }
  }

  test("a context owns every component") {
    val owned = new ArchCondition[JavaClass]("be created or named where a context is put together") {
      override def check(component: JavaClass, events: ConditionEvents): Unit = {
        val named = component.getAccessesToSelf.stream()
          .anyMatch(_.getOriginOwner.getPackageName == "org.apache.spark.sql.penstock.components")
        if (!named) events.add(SimpleConditionEvent.violated(component, s"no context owns ${component.getName}"))
      }
    }
    // The plugin makes the planner.
    check(
      classesThat("are components", (c: JavaClass) => c.isAssignableTo(classOf[Component]) && !c.isInterface)
        .and(DescribedPredicate.not(assignableTo(classOf[Planner])))
        .should(owned)
    )
  }

  private def lastNameOf(c: JavaClass): String = c.getName.split('.').last

  private def classesThat(are: String, test: JavaClass => Boolean) =
    ArchRuleDefinition.classes().that(DescribedPredicate.describe(are, (c: JavaClass) => test(c)))
}
