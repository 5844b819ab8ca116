package org.apache.spark.sql.penstock.state

import java.nio.charset.StandardCharsets.UTF_8
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

import org.apache.spark.util.Utils
import org.apache.spark.{SparkConf, SparkEnv}

import io.penstock.conf.Settings
import io.penstock.sidecars.transfer.TransferSettings
import io.penstock.transport.Transports

/** Settings of the transfer sidecars of an application's executors. */
object TravelSettings {
  private val Algorithm = "HmacSHA256"
  private val Channels = 4
  private val Encrypting = Seq(
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled"
  )

  /** Name under which the driver passes a secret to executors. Spark redacts values whose name contains "secret". */
  val SecretKey = "sidecar.secret"

  /** Whether executors transfer shards to each other. */
  def isOn(conf: SparkConf): Boolean = Settings.application(Settings.Transport, conf.getAll.toMap) != Transports.Off

  /**
   * The settings of an executor's transfer sidecar.
   *
   * @param secret
   *   secret that the driver has created
   */
  def of(conf: SparkConf, secret: String): TransferSettings = {
    // If Spark authenticates with a secret, a process that does not know it must not be able to connect.
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
