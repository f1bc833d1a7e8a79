WITH `matched` AS (
  SELECT
    `t7`.`wallet`
  FROM (
    SELECT
      `t0`.`wallet`
    FROM `project`.`nbext`.`history` AS `t0`
    WHERE
      `t0`.`contract` = 0
      AND `t0`.`from_block` <= 120
      AND `t0`.`to_block` > 120
      AND `t0`.`size` >= 1
  ) AS `t7`
  WHERE
    EXISTS(
      SELECT
        1
      FROM (
        SELECT
          `t0`.`wallet`
        FROM `project`.`nbext`.`history` AS `t0`
        WHERE
          `t0`.`contract` = 1
          AND `t0`.`from_block` <= 120
          AND `t0`.`to_block` > 120
          AND `t0`.`size` >= 1
      ) AS `t8`
      WHERE
        `t7`.`wallet` = `t8`.`wallet`
    )
    AND NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          `t2`.`wallet`
        FROM `project`.`nbext`.`wallets` AS `t2`
        WHERE
          EXISTS(
            SELECT
              1
            FROM (
              SELECT
                IF(pos = pos_2, `address`, NULL) AS `address`
              FROM UNNEST(GENERATE_ARRAY(
                0,
                GREATEST(
                  ARRAY_LENGTH(
                    [
                      '0x0000000000000000000000000000000000000000',
                      '0x000000000000000000000000000000000000dead'
                    ]
                  )
                ) - 1
              )) AS pos
              CROSS JOIN UNNEST([
                '0x0000000000000000000000000000000000000000',
                '0x000000000000000000000000000000000000dead'
              ]) AS `address` WITH OFFSET AS pos_2
              WHERE
                pos = pos_2
                OR (
                  pos > (
                    ARRAY_LENGTH(
                      [
                        '0x0000000000000000000000000000000000000000',
                        '0x000000000000000000000000000000000000dead'
                      ]
                    ) - 1
                  )
                  AND pos_2 = (
                    ARRAY_LENGTH(
                      [
                        '0x0000000000000000000000000000000000000000',
                        '0x000000000000000000000000000000000000dead'
                      ]
                    ) - 1
                  )
                )
            ) AS `t6`
            WHERE
              `t2`.`address` = `t6`.`address`
          )
      ) AS `t10`
      WHERE
        `t7`.`wallet` = `t10`.`wallet`
    )
), `returned` AS (
  WITH `t10` AS (
    SELECT
      `t5`.`contract`,
      `t5`.`block`,
      `t5`.`log_index`,
      `t5`.`sender`,
      `t5`.`recipient`,
      `t5`.`hi`,
      `t5`.`mid`,
      `t5`.`lo`,
      `t5`.`count`
    FROM `project`.`nbext`.`transfers` AS `t5`
    WHERE
      EXISTS(
        SELECT
          1
        FROM (
          SELECT
            *
          FROM `project`.`nbext`.`contracts` AS `t3`
          WHERE
            `t3`.`chain_id` = 1
        ) AS `t9`
        WHERE
          `t5`.`contract` = `t9`.`contract`
      )
  )
  SELECT
    `t20`.`wallet`
  FROM (
    SELECT
      `t4`.`wallet`,
      `t19`.`wallet` AS `wallet_right`,
      `t19`.`fact`
    FROM `matched` AS `t4`
    LEFT OUTER JOIN (
      SELECT
        `t17`.`wallet`,
        `t17`.`active_days` AS `fact`
      FROM (
        SELECT
          `t16`.`wallet`,
          MIN(`t16`.`block`) AS `first_block`,
          MAX(`t16`.`block`) AS `last_block`,
          COUNT(*) AS `transfers`,
          COUNT(DISTINCT `t16`.`day`) AS `active_days`
        FROM (
          SELECT
            `t15`.`block`,
            `t15`.`wallet`,
            `t8`.`block` AS `block_right`,
            `t8`.`day`
          FROM (
            SELECT
              *
            FROM (
              SELECT
                `t11`.`block`,
                `t11`.`sender` AS `wallet`
              FROM `t10` AS `t11`
              WHERE
                `t11`.`block` <= 120
            ) AS `t12`
            UNION ALL
            SELECT
              *
            FROM (
              SELECT
                `t11`.`block`,
                `t11`.`recipient` AS `wallet`
              FROM `t10` AS `t11`
              WHERE
                `t11`.`block` <= 120 AND `t11`.`sender` <> `t11`.`recipient`
            ) AS `t13`
          ) AS `t15`
          LEFT OUTER JOIN (
            SELECT
              `t1`.`block`,
              CAST(FLOOR(ieee_divide(`t1`.`timestamp`, 86400)) AS INT64) AS `day`
            FROM `project`.`nbext`.`blocks` AS `t1`
            WHERE
              `t1`.`chain_id` = 1
          ) AS `t8`
            ON `t15`.`block` = `t8`.`block`
        ) AS `t16`
        GROUP BY
          1
      ) AS `t17`
    ) AS `t19`
      ON `t4`.`wallet` = `t19`.`wallet`
  ) AS `t20`
  ORDER BY
    `t20`.`fact` ASC NULLS LAST,
    `t20`.`wallet` ASC NULLS LAST
  LIMIT 100
), `t20` AS (
  SELECT
    `t7`.`contract`,
    `t7`.`block`,
    `t7`.`log_index`,
    `t7`.`sender`,
    `t7`.`recipient`,
    `t7`.`hi`,
    `t7`.`mid`,
    `t7`.`lo`,
    `t7`.`count`
  FROM `project`.`nbext`.`transfers` AS `t7`
  WHERE
    EXISTS(
      SELECT
        1
      FROM (
        SELECT
          *
        FROM `project`.`nbext`.`contracts` AS `t5`
        WHERE
          `t5`.`chain_id` = 1
      ) AS `t17`
      WHERE
        `t7`.`contract` = `t17`.`contract`
    )
)
SELECT
  *,
  (
    SELECT
      COUNT(*)
    FROM `matched`
  ) AS `matched`
FROM (
  SELECT
    `t34`.*
    EXCEPT (`wallet`)
  FROM (
    SELECT
      `t9`.`wallet`,
      `t9`.`address`,
      `t21`.`USDC_balance_raw`,
      `t22`.`UNI_balance_raw`,
      `t33`.`activeDays`
    FROM (
      SELECT
        `t0`.`wallet`,
        `t0`.`address`
      FROM `project`.`nbext`.`wallets` AS `t0`
    ) AS `t9`
    LEFT OUTER JOIN (
      SELECT
        `t14`.`wallet`,
        `t14`.`USDC_balance_raw`
      FROM (
        SELECT
          `t2`.`wallet`,
          STRUCT(`t2`.`hi` AS `hi`, `t2`.`mid` AS `mid`, `t2`.`lo` AS `lo`) AS `USDC_balance_raw`
        FROM `project`.`nbext`.`history` AS `t2`
        WHERE
          `t2`.`contract` = 0
          AND `t2`.`from_block` <= 120
          AND `t2`.`to_block` > 120
          AND `t2`.`size` >= 1
      ) AS `t14`
      WHERE
        EXISTS(
          SELECT
            1
          FROM `returned` AS `t6`
          WHERE
            `t14`.`wallet` = `t6`.`wallet`
        )
    ) AS `t21`
      ON `t9`.`wallet` = `t21`.`wallet`
    LEFT OUTER JOIN (
      SELECT
        `t15`.`wallet`,
        `t15`.`UNI_balance_raw`
      FROM (
        SELECT
          `t2`.`wallet`,
          STRUCT(`t2`.`hi` AS `hi`, `t2`.`mid` AS `mid`, `t2`.`lo` AS `lo`) AS `UNI_balance_raw`
        FROM `project`.`nbext`.`history` AS `t2`
        WHERE
          `t2`.`contract` = 1
          AND `t2`.`from_block` <= 120
          AND `t2`.`to_block` > 120
          AND `t2`.`size` >= 1
      ) AS `t15`
      WHERE
        EXISTS(
          SELECT
            1
          FROM `returned` AS `t6`
          WHERE
            `t15`.`wallet` = `t6`.`wallet`
        )
    ) AS `t22`
      ON `t9`.`wallet` = `t22`.`wallet`
    LEFT OUTER JOIN (
      SELECT
        `t31`.`wallet`,
        `t31`.`activeDays`
      FROM (
        SELECT
          `t29`.`wallet`,
          STRUCT(`t29`.`active_days` AS `number`) AS `activeDays`
        FROM (
          SELECT
            `t28`.`wallet`,
            MIN(`t28`.`block`) AS `first_block`,
            MAX(`t28`.`block`) AS `last_block`,
            COUNT(*) AS `transfers`,
            COUNT(DISTINCT `t28`.`day`) AS `active_days`
          FROM (
            SELECT
              `t27`.`block`,
              `t27`.`wallet`,
              `t16`.`block` AS `block_right`,
              `t16`.`day`
            FROM (
              SELECT
                *
              FROM (
                SELECT
                  `t23`.`block`,
                  `t23`.`sender` AS `wallet`
                FROM `t20` AS `t23`
                WHERE
                  `t23`.`block` <= 120
              ) AS `t24`
              UNION ALL
              SELECT
                *
              FROM (
                SELECT
                  `t23`.`block`,
                  `t23`.`recipient` AS `wallet`
                FROM `t20` AS `t23`
                WHERE
                  `t23`.`block` <= 120 AND `t23`.`sender` <> `t23`.`recipient`
              ) AS `t25`
            ) AS `t27`
            LEFT OUTER JOIN (
              SELECT
                `t3`.`block`,
                CAST(FLOOR(ieee_divide(`t3`.`timestamp`, 86400)) AS INT64) AS `day`
              FROM `project`.`nbext`.`blocks` AS `t3`
              WHERE
                `t3`.`chain_id` = 1
            ) AS `t16`
              ON `t27`.`block` = `t16`.`block`
          ) AS `t28`
          GROUP BY
            1
        ) AS `t29`
      ) AS `t31`
      WHERE
        EXISTS(
          SELECT
            1
          FROM `returned` AS `t6`
          WHERE
            `t31`.`wallet` = `t6`.`wallet`
        )
    ) AS `t33`
      ON `t9`.`wallet` = `t33`.`wallet`
    WHERE
      EXISTS(
        SELECT
          1
        FROM `returned` AS `t6`
        WHERE
          `t9`.`wallet` = `t6`.`wallet`
      )
  ) AS `t34`
) AS `t35`
ORDER BY
  `t35`.`address` ASC NULLS LAST
