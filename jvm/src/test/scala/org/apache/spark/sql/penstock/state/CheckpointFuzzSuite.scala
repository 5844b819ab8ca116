package org.apache.spark.sql.penstock.state

import java.nio.file.{Files, Path}

import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.SameOnEverySpark
import io.penstock.Seed
import io.penstock.errors.PenstockException
import io.penstock.state.format.Damage.Damaged
import io.penstock.state.format._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.tags.Slow

/**
 * Feeds damaged, missing and misplaced files to everything that reads a checkpoint.
 *
 * With the writer's checksums intact, a reader returns the original result or fails with the name of the file and the
 * position. There is one exception, because no file names its checkpoint: the manifest, routing versions and FORMAT of
 * another query are accepted as long as the files that they refer to exist.
 *
 * With checksums adapted to the damage, a reader fails or returns something well-formed. The bytes of rows are not
 * checked here, because Spark's own decoders read them.
 */
@Slow
@SameOnEverySpark
class CheckpointFuzzSuite extends AnyFunSuite with FuzzedCheckpoints {
  import FuzzedCheckpoints._
  import WrittenCheckpoint._

  private lazy val one = written(Seed.value)
  private lazy val other = written(Seed.value + 1)

  private def original(c: Damageable, path: String, input: Damaged): Unit =
    c.withDamaged(path, input) {
      case (reading, Right(result)) => assert(result == c.result(reading), s"result of reading ${reading.name}")
      case (_, Left(e)) if e.errorClass == "PENSTOCK_NEWER_FORMAT" =>
        assert(
          e.detail.contains(s"$path has format version ${input.bytes(8) & 0xff | (input.bytes(9) & 0xff) << 8}"),
          e
        )
        assert(!input.bytes.slice(8, 10).sameElements(c.intact(path).slice(8, 10)), e)
      case (_, Left(e)) =>
        corrupt(e, path, 0L, math.max(input.bytes.length, c.intact(path).length).toLong)
        if (path.startsWith("changelogs/") || path.startsWith("snapshots/"))
          assert(e.detail.matches(".*; shard \\d+ of store .* version \\d+ .* needs it: restore .*"), e)
    }

  /** Accepts results, and errors where the damage is not visible in the file itself. */
  private def consistent(c: Damageable, outcome: Fuzzing.Outcome[Any]): Unit = outcome match {
    case Right(_) =>
    case Left(e) if e.errorClass == "PENSTOCK_MISSING_FILE" =>
      assert(e.detail.matches(s"${c.directory}/\\S+ does not exist, but .*shard \\d+.* version \\d+ .*"), e)
    case Left(e) if e.errorClass == "PENSTOCK_STATE_MISSING" => assert(e.detail.contains(c.root.toString), e)
    case Left(e) =>
      assert(e.errorClass == "PENSTOCK_CORRUPT_FILE" && Fuzzing.Place.matches(e.detail), e)
      assert(e.detail.startsWith(c.directory.toString), e)
  }

  private def fuzzTest(name: String)(body: => Unit): Unit = test(name) {
    info(s"seed ${Seed.value}")
    // A failed test has left its damage behind.
    one.paths.foreach(one.restore)
    body
    info(s"${countedInputs()} inputs")
  }

  fuzzTest("the checkpoint has all kinds of files, and every file is read") {
    val kinds = one.paths.groupBy(_.takeWhile(_ != '/'))
    assert(kinds.keySet == Set("FORMAT", "epochs", "manifests", "changelogs", "snapshots"))
    assert(kinds("manifests").size == Batches + 1)
    // Manifests of replaced generations are not read.
    assert(one.paths.filter(one.readBy(_).isEmpty).isEmpty)
    val newest = new StateDirectory(one.root.toString, one.hadoop).readManifest(Batches - 1, 0L)
    assert(newest.containers.map(_.getClass).size == 3)
    val families = StoreNames.flatMap(s =>
      load(new StateDirectory(one.root.toString, one.hadoop), StoreKey(0L, s), 3L)
        .asInstanceOf[Map[Int, Contents.Content]].values.flatMap(_.map { case (name, (traits, _)) => name -> traits })
    )
    assert(families.map(_._2).toSet.size == 4 && families.exists(_._1 == "gone"))
  }

  fuzzTest("with the writer's checksums, readers return the original result or fail") {
    one.paths.foreach { path =>
      val intact = one.intact(path)
      // Every length and bit of small files and headers. ReaderFuzzSuite covers complete manifests.
      def chosen(i: Int, step: Int) = intact.length < 100 || i < FileFormat.HeaderBytes || (i + path.length) % step == 0
      Damage.truncated(intact).zipWithIndex.foreach { case (d, i) => if (chosen(i, 10)) original(one, path, d) }
      Damage.flipped(intact).zipWithIndex.foreach { case (d, i) => if (chosen(i / 8, 40)) original(one, path, d) }
      (0 until 150).foreach(_ => original(one, path, Damage.random(intact, random)))
      Damage.foreign(random).foreach(original(one, path, _))
      one.restore(path)
    }
  }

  fuzzTest("files in the place of other files") {
    for (path <- one.paths; from <- one.paths if from != path) {
      original(one, path, Damaged(s"replaced by $from", one.intact(from)))
      one.restore(path)
    }
  }

  fuzzTest("files of another checkpoint") {
    val theirs = other.paths.groupBy(_.takeWhile(_ != '/'))
    for (path <- one.paths; from <- theirs(path.takeWhile(_ != '/'))) {
      val input = Damaged(s"replaced by $from of another checkpoint", other.intact(from))
      if (from != path) original(one, path, input)
      else
        one.withDamaged(path, input) { (reading, outcome) =>
          consistent(one, outcome)
          outcome.foreach { result =>
            assert(result == one.result(reading) || !path.startsWith("changelogs") && !path.startsWith("snapshots"))
          }
        }
      one.restore(path)
    }
  }

  fuzzTest("missing files") {
    val listed = Seq("FORMAT", "epochs", "manifests")
    for (path <- one.paths; reading <- one.readBy(path) if !listed.contains(path.takeWhile(_ != '/'))) {
      fuzz(s"$path, for ${reading.name}", Damaged("deleted", Array())) { _ =>
        Files.delete(one.directory.resolve(path))
        try reading(one)
        finally one.restore(path)
      } {
        // A snapshot is bypassed if the changes that it replaces are available.
        case Right(result) if path.startsWith("snapshots/") => assert(result == one.result(reading))
        case Right(_) => fail("the missing file was not noticed")
        case Left(e) =>
          assert(
            e.errorClass == "PENSTOCK_MISSING_FILE" && e.detail.contains(s"${one.directory}/$path does not exist"),
            e
          )
          consistent(one, Left(e))
      }
    }
    (0L until Batches).foreach { batch =>
      val path = s"manifests/$batch.0"
      Files.delete(one.directory.resolve(path))
      val e = intercept[PenstockException](new StateDirectory(one.root.toString, one.hadoop).readManifest(batch, 0L))
      assert(e.errorClass == "PENSTOCK_MISSING_FILE" && e.detail.contains(path))
      one.restore(path)
    }
  }

  /** Damages the body of a manifest and adapts its checksum. The payload is unchanged. */
  private def resealed(c: Damageable, path: String, input: Damaged, payload: Array[Byte]): Unit = {
    val file = FileFormat.frame(FileFormat.Kind.Manifest, input.bytes) ++ payload
    c.withDamaged(path, Damaged(s"body ${input.change}, sealed again", file))((_, outcome) => consistent(c, outcome))
  }

  private def bodyOf(file: Array[Byte]): (Array[Byte], Array[Byte]) = {
    val end = FileFormat.HeaderBytes + FileFormat.readHeader("it", FileFormat.Kind.Manifest, file).length
    (file.slice(FileFormat.HeaderBytes, end), file.drop(end))
  }

  fuzzTest("manifests with adapted checksums: readers return something well-formed or fail") {
    one.paths.filter(_.startsWith("manifests/")).foreach { path =>
      val (body, payload) = bodyOf(one.intact(path))
      (0 until 250).foreach(_ => resealed(one, path, Damage.random(body, random), payload))
      one.restore(path)
    }
  }

  fuzzTest("sections with adapted checksums: readers return something well-formed or name the section") {
    val batch = Batches - 1
    val path = Container.InManifest(batch, 0L).path
    val (_, ownPayload) = bodyOf(one.intact(path))
    val manifest = new StateDirectory(one.root.toString, one.hadoop).readManifest(batch, 0L)
    val sections = for {
      (store, shards) <- manifest.stores.toSeq.sortBy(_._1.storeName)
      (refs, shard) <- shards.zipWithIndex
      section <- refs.snapshot.map(_.section) ++ refs.deltas.map(_.section)
    } yield (store, shard, section)
    (0 until 1500).foreach { i =>
      val (store, shard, section) = sections(i % sections.size)
      val container = section.container.path
      val old = one.intact(container)
      val damaged = Damage.random(old.slice(section.offset.toInt, section.offset.toInt + section.length), random)
      // Appended to the file, so that other sections keep their offsets.
      val ref = SectionRef(section.container, old.length.toLong, damaged.bytes.length, FileFormat.crc(damaged.bytes))
      val changed = manifest.copy(stores =
        manifest.stores.updated(
          store,
          manifest.stores(store).updated(shard, replaced(manifest.stores(store)(shard), section, ref))
        )
      )
      one.write(container, old ++ damaged.bytes)
      val body = ManifestFormat.encode(changed, Container.InManifest(batch, 0L))
      one.write(path, FileFormat.frame(FileFormat.Kind.Manifest, body) ++ ownPayload)
      val readers = readings.filter(r => !r.rows && one.readBy(path).contains(r) && one.readBy(container).contains(r))
      val reading = readers(random.nextInt(readers.size))
      fuzz(s"$container, for ${reading.name}", damaged)(_ => reading(one)) {
        case Right(_) =>
        // Other flags of a family are well-formed. The next change set with the family contradicts them.
        case Left(e) if e.detail.contains("had other flags") =>
          val parts = changed.stores(store)(shard).containers.map(_.path).toSeq
          assert(parts.exists(p => e.detail.contains(p)), e)
        // A reader checks only the hash of a page's first record. A wrong hash of another record is found once it is
        // the first.
        case Left(e)
            if container.startsWith("snapshots/") && e.detail.startsWith(s"${Contents.rewrittenPath} cannot") =>
          assert(e.detail.contains("the hash of a key is"), e)
        case Left(e) => corrupt(e, container, old.length.toLong, old.length.toLong + damaged.bytes.length)
      }
      one.restore(container)
      one.restore(path)
    }
  }

  private def replaced(refs: ShardRefs, section: SectionRef, by: SectionRef): ShardRefs = ShardRefs(
    refs.snapshot.map(s => if (s.section == section) s.copy(section = by) else s),
    refs.deltas.map(d => if (d.section == section) d.copy(section = by) else d)
  )

  fuzzTest("with Spark's default file manager, which writes checksum files") {
    val c = written(Seed.value, classOf[Default])
    c.paths.foreach { path =>
      val beside = c.directory.resolve(path).resolveSibling(s".${Path.of(path).getFileName}.crc")
      val checksums = Files.readAllBytes(beside)
      assert(checksums.nonEmpty)
      val intact = c.intact(path)
      val truncations = Damage.truncated(intact).zipWithIndex.collect { case (d, i) if i % 40 == 0 => d }
      (truncations ++ Iterator.fill(30)(Damage.random(intact, random))).foreach { d =>
        if (random.nextBoolean()) Files.deleteIfExists(beside): Unit
        original(c, path, d)
        Files.write(beside, checksums)
      }
      c.restore(path)
      (Damage.truncated(checksums) ++ Iterator.fill(30)(Damage.random(checksums, random))).foreach { d =>
        Files.write(beside, d.bytes)
        original(c, path, Damaged(s"its checksums ${d.change}", intact))
      }
      Files.write(beside, checksums)
    }
    // Spark's file systems fail in various ways for sections beyond the end of the file.
    c.paths.filter(_.startsWith("manifests/")).foreach { path =>
      Files.deleteIfExists(c.directory.resolve(path).resolveSibling(s".${Path.of(path).getFileName}.crc"))
      val (body, payload) = bodyOf(c.intact(path))
      (0 until 50).foreach(_ => resealed(c, path, Damage.random(body, random), payload))
      c.restore(path)
    }
  }
}
