import java.util.Collections;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Listed after Penstock's plugin in {@code spark.plugins}, this plugin removes the number of state partitions that
 * Penstock sets. {@code spark.sql.shuffle.partitions} then determines the number, as Spark's tests expect (1, 2, 3, 5,
 * 10 or 100).
 */
public final class ShufflePartitionsDecide implements SparkPlugin {
  private static final String STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions";

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext sc, PluginContext context) {
        context.conf().remove(STATE_PARTITIONS);
        return Collections.emptyMap();
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return null;
  }
}
