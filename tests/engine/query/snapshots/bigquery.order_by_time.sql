WITH `matched` AS (
  SELECT
    `t6`.`wallet`
  FROM (
    SELECT
      `t0`.`wallet`
    FROM `project`.`nbext`.`balances` AS `t0`
    WHERE
      `t0`.`contract` = 0 AND `t0`.`size` >= 1
  ) AS `t6`
  WHERE
    NOT EXISTS(
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
            ) AS `t5`
            WHERE
              `t2`.`address` = `t5`.`address`
          )
      ) AS `t8`
      WHERE
        `t6`.`wallet` = `t8`.`wallet`
    )
), `returned` AS (
  SELECT
    `t10`.`wallet`
  FROM (
    SELECT
      `t3`.`wallet`,
      `t9`.`wallet` AS `wallet_right`,
      `t9`.`fact`
    FROM `matched` AS `t3`
    LEFT OUTER JOIN (
      SELECT
        `t6`.`wallet`,
        `t7`.`timestamp` AS `fact`
      FROM (
        SELECT
          `t1`.`wallet`,
          `t1`.`last_block` AS `block`
        FROM `project`.`nbext`.`activity` AS `t1`
        WHERE
          `t1`.`chain_id` = 1
      ) AS `t6`
      INNER JOIN (
        SELECT
          *
        FROM `project`.`nbext`.`blocks` AS `t2`
        WHERE
          `t2`.`chain_id` = 1
      ) AS `t7`
        ON `t6`.`block` = `t7`.`block`
    ) AS `t9`
      ON `t3`.`wallet` = `t9`.`wallet`
  ) AS `t10`
  ORDER BY
    `t10`.`fact` DESC,
    `t10`.`wallet` ASC NULLS LAST
  LIMIT 100
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
      `t7`.`wallet`,
      `t7`.`address`,
      `t24`.`USDC_balance_raw`,
      `t32`.`lastSeen`,
      `t33`.`firstSeen`,
      `t25`.`transfers`
    FROM (
      SELECT
        `t0`.`wallet`,
        `t0`.`address`
      FROM `project`.`nbext`.`wallets` AS `t0`
    ) AS `t7`
    LEFT OUTER JOIN (
      SELECT
        `t14`.`wallet`,
        `t14`.`USDC_balance_raw`
      FROM (
        SELECT
          `t2`.`wallet`,
          STRUCT(`t2`.`hi` AS `hi`, `t2`.`mid` AS `mid`, `t2`.`lo` AS `lo`) AS `USDC_balance_raw`
        FROM `project`.`nbext`.`balances` AS `t2`
        WHERE
          `t2`.`contract` = 0 AND `t2`.`size` >= 1
      ) AS `t14`
      WHERE
        EXISTS(
          SELECT
            1
          FROM `returned` AS `t5`
          WHERE
            `t14`.`wallet` = `t5`.`wallet`
        )
    ) AS `t24`
      ON `t7`.`wallet` = `t24`.`wallet`
    LEFT OUTER JOIN (
      SELECT
        `t28`.`wallet`,
        `t28`.`lastSeen`
      FROM (
        SELECT
          `t22`.`wallet`,
          STRUCT(`t22`.`fact` AS `seconds`) AS `lastSeen`
        FROM (
          SELECT
            `t16`.`wallet`,
            `t18`.`timestamp` AS `fact`
          FROM (
            SELECT
              `t3`.`wallet`,
              `t3`.`last_block` AS `block`
            FROM `project`.`nbext`.`activity` AS `t3`
            WHERE
              `t3`.`chain_id` = 1
          ) AS `t16`
          INNER JOIN (
            SELECT
              *
            FROM `project`.`nbext`.`blocks` AS `t4`
            WHERE
              `t4`.`chain_id` = 1
          ) AS `t18`
            ON `t16`.`block` = `t18`.`block`
        ) AS `t22`
      ) AS `t28`
      WHERE
        EXISTS(
          SELECT
            1
          FROM `returned` AS `t5`
          WHERE
            `t28`.`wallet` = `t5`.`wallet`
        )
    ) AS `t32`
      ON `t7`.`wallet` = `t32`.`wallet`
    LEFT OUTER JOIN (
      SELECT
        `t29`.`wallet`,
        `t29`.`firstSeen`
      FROM (
        SELECT
          `t23`.`wallet`,
          STRUCT(`t23`.`fact` AS `seconds`) AS `firstSeen`
        FROM (
          SELECT
            `t17`.`wallet`,
            `t19`.`timestamp` AS `fact`
          FROM (
            SELECT
              `t3`.`wallet`,
              `t3`.`first_block` AS `block`
            FROM `project`.`nbext`.`activity` AS `t3`
            WHERE
              `t3`.`chain_id` = 1
          ) AS `t17`
          INNER JOIN (
            SELECT
              *
            FROM `project`.`nbext`.`blocks` AS `t4`
            WHERE
              `t4`.`chain_id` = 1
          ) AS `t19`
            ON `t17`.`block` = `t19`.`block`
        ) AS `t23`
      ) AS `t29`
      WHERE
        EXISTS(
          SELECT
            1
          FROM `returned` AS `t5`
          WHERE
            `t29`.`wallet` = `t5`.`wallet`
        )
    ) AS `t33`
      ON `t7`.`wallet` = `t33`.`wallet`
    LEFT OUTER JOIN (
      SELECT
        `t15`.`wallet`,
        `t15`.`transfers`
      FROM (
        SELECT
          `t3`.`wallet`,
          `t3`.`transfers`
        FROM `project`.`nbext`.`activity` AS `t3`
        WHERE
          `t3`.`chain_id` = 1
      ) AS `t15`
      WHERE
        EXISTS(
          SELECT
            1
          FROM `returned` AS `t5`
          WHERE
            `t15`.`wallet` = `t5`.`wallet`
        )
    ) AS `t25`
      ON `t7`.`wallet` = `t25`.`wallet`
    WHERE
      EXISTS(
        SELECT
          1
        FROM `returned` AS `t5`
        WHERE
          `t7`.`wallet` = `t5`.`wallet`
      )
  ) AS `t34`
) AS `t35`
ORDER BY
  `t35`.`address` ASC NULLS LAST
