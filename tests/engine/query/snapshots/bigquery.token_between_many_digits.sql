WITH `matched` AS (
  SELECT
    `t11`.`wallet`
  FROM (
    SELECT
      `t9`.`wallet`
    FROM (
      SELECT
        *
      FROM (
        SELECT
          `t0`.`wallet`,
          `t0`.`hi`,
          `t0`.`mid`,
          `t0`.`lo`,
          `t0`.`size`
        FROM `project`.`nbext`.`balances` AS `t0`
        WHERE
          `t0`.`contract` = 1
          AND `t0`.`size` > 540000000000000000
          AND `t0`.`size` < 6057896044618658097
      ) AS `t4`
      UNION ALL
      SELECT
        *
      FROM (
        SELECT
          `t0`.`wallet`,
          `t0`.`hi`,
          `t0`.`mid`,
          `t0`.`lo`,
          `t0`.`size`
        FROM `project`.`nbext`.`balances` AS `t0`
        WHERE
          `t0`.`contract` = 1
          AND (
            (
              `t0`.`size` = 540000000000000000
            ) OR (
              `t0`.`size` = 6057896044618658097
            )
          )
          AND (
            (
              `t0`.`size` > 540000000000000000
            )
            OR (
              (
                `t0`.`size` = 540000000000000000
              )
              AND (
                (
                  `t0`.`hi` > 0
                )
                OR (
                  (
                    `t0`.`hi` = 0
                  )
                  AND (
                    (
                      `t0`.`mid` > 0
                    )
                    OR (
                      (
                        `t0`.`mid` = 0
                      )
                      AND (
                        `t0`.`lo` >= CAST('4000000000000000000003' AS NUMERIC)
                      )
                    )
                  )
                )
              )
            )
          )
          AND (
            (
              `t0`.`size` < 6057896044618658097
            )
            OR (
              (
                `t0`.`size` = 6057896044618658097
              )
              AND (
                (
                  `t0`.`hi` < CAST('5789604461865809771178549' AS NUMERIC)
                )
                OR (
                  (
                    `t0`.`hi` = CAST('5789604461865809771178549' AS NUMERIC)
                  )
                  AND (
                    (
                      `t0`.`mid` < CAST('25043439539266349923328202' AS NUMERIC)
                    )
                    OR (
                      (
                        `t0`.`mid` = CAST('25043439539266349923328202' AS NUMERIC)
                      )
                      AND (
                        `t0`.`lo` <= CAST('82019728792003956564819967' AS NUMERIC)
                      )
                    )
                  )
                )
              )
            )
          )
      ) AS `t8`
    ) AS `t9`
  ) AS `t11`
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
      ) AS `t7`
      WHERE
        `t11`.`wallet` = `t7`.`wallet`
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
  `t10`.`address`,
  `t10`.`UNI_balance_raw`,
  (
    SELECT
      COUNT(*)
    FROM `matched`
  ) AS `matched`
FROM (
  SELECT
    `t5`.`wallet`,
    `t5`.`address`,
    `t9`.`UNI_balance_raw`
  FROM (
    SELECT
      `t0`.`wallet`,
      `t0`.`address`
    FROM `project`.`nbext`.`wallets` AS `t0`
  ) AS `t5`
  LEFT OUTER JOIN (
    SELECT
      `t7`.`wallet`,
      `t7`.`UNI_balance_raw`
    FROM (
      SELECT
        `t2`.`wallet`,
        STRUCT(`t2`.`hi` AS `hi`, `t2`.`mid` AS `mid`, `t2`.`lo` AS `lo`) AS `UNI_balance_raw`
      FROM `project`.`nbext`.`balances` AS `t2`
      WHERE
        `t2`.`contract` = 1 AND `t2`.`size` >= 540000000000000000
    ) AS `t7`
    WHERE
      EXISTS(
        SELECT
          1
        FROM `returned` AS `t3`
        WHERE
          `t7`.`wallet` = `t3`.`wallet`
      )
  ) AS `t9`
    ON `t5`.`wallet` = `t9`.`wallet`
  WHERE
    EXISTS(
      SELECT
        1
      FROM `returned` AS `t3`
      WHERE
        `t5`.`wallet` = `t3`.`wallet`
    )
) AS `t10`
ORDER BY
  `t10`.`address` ASC NULLS LAST
