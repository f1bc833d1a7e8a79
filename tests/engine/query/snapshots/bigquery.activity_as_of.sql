WITH `matched` AS (
  WITH `t14` AS (
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
        ) AS `t11`
        WHERE
          `t5`.`contract` = `t11`.`contract`
      )
  )
  SELECT
    `t23`.`wallet`
  FROM (
    SELECT
      `t21`.`wallet`
    FROM (
      SELECT
        `t20`.`wallet`,
        MIN(`t20`.`block`) AS `first_block`,
        MAX(`t20`.`block`) AS `last_block`,
        COUNT(*) AS `transfers`,
        COUNT(DISTINCT `t20`.`day`) AS `active_days`
      FROM (
        SELECT
          `t19`.`block`,
          `t19`.`wallet`,
          `t10`.`block` AS `block_right`,
          `t10`.`day`
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t15`.`block`,
              `t15`.`sender` AS `wallet`
            FROM `t14` AS `t15`
            WHERE
              `t15`.`block` <= 120
          ) AS `t16`
          UNION ALL
          SELECT
            *
          FROM (
            SELECT
              `t15`.`block`,
              `t15`.`recipient` AS `wallet`
            FROM `t14` AS `t15`
            WHERE
              `t15`.`block` <= 120 AND `t15`.`sender` <> `t15`.`recipient`
          ) AS `t17`
        ) AS `t19`
        LEFT OUTER JOIN (
          SELECT
            `t1`.`block`,
            CAST(FLOOR(ieee_divide(`t1`.`timestamp`, 86400)) AS INT64) AS `day`
          FROM `project`.`nbext`.`blocks` AS `t1`
          WHERE
            `t1`.`chain_id` = 1
        ) AS `t10`
          ON `t19`.`block` = `t10`.`block`
      ) AS `t20`
      GROUP BY
        1
    ) AS `t21`
    WHERE
      `t21`.`transfers` >= 3 AND `t21`.`active_days` >= 2
  ) AS `t23`
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          `t4`.`wallet`
        FROM `project`.`nbext`.`wallets` AS `t4`
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
            ) AS `t8`
            WHERE
              `t4`.`address` = `t8`.`address`
          )
      ) AS `t13`
      WHERE
        `t23`.`wallet` = `t13`.`wallet`
    )
), `returned` AS (
  SELECT
    *
  FROM `matched` AS `t0`
  ORDER BY
    `t0`.`wallet` ASC NULLS LAST
  LIMIT 100
)
SELECT
  `t5`.`address`,
  (
    SELECT
      COUNT(*)
    FROM `matched`
  ) AS `matched`
FROM (
  SELECT
    `t4`.`wallet`,
    `t4`.`address`
  FROM (
    SELECT
      `t0`.`wallet`,
      `t0`.`address`
    FROM `project`.`nbext`.`wallets` AS `t0`
  ) AS `t4`
  WHERE
    EXISTS(
      SELECT
        1
      FROM `returned` AS `t2`
      WHERE
        `t4`.`wallet` = `t2`.`wallet`
    )
) AS `t5`
ORDER BY
  `t5`.`address` ASC NULLS LAST
