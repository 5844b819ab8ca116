package org.apache.spark.sql.penstock.state

import java.nio.charset.StandardCharsets.UTF_8
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

import org.apache.spark.util.Utils
import org.apache.spark.{SparkConf, SparkEnv}

import io.penstock.conf.Settings
import io.penstock.sidecars.transfer.TransferSettings

/** How the sidecars of an application's executors are to work. */
object TravelSettings {
  private val Algorithm = "HmacSHA256"
  private val Channels = 4
  private val Encrypting = Seq(
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled"
  )

  /** Under this name the driver gives executors a secret; Spark shows nothing that is named so. */
  val SecretKey = "sidecar.secret"

  /** Whether shards are to travel at all. */
  def isOn(conf: SparkConf): Boolean = Settings.application(Settings.Transport, conf.getAll.toMap) != "off"

  /**
   * What an executor's sidecar is told.
   *
   * @param secret
   *   the driver's secret
   */
  def of(conf: SparkConf, secret: String): TransferSettings = {
    // Where Spark has a secret, who does not know it must not get in.
    val authenticated = conf.getBoolean("spark.authenticate", false)
    val known = if (authenticated) SparkEnv.get.securityManager.getSecretKey() else ""
    val mac = Mac.getInstance(Algorithm)
    mac.init(new SecretKeySpec(s"$known$secret".getBytes(UTF_8), Algorithm))
    TransferSettings(
      mac.doFinal("penstock sidecars".getBytes(UTF_8)),
      Utils.localHostName(),
      Settings.application(Settings.Transport, conf.getAll.toMap),
      Encrypting.exists(conf.getBoolean(_, false)),
      authenticated,
      Channels
    )
  }
}
