WITH `matched` AS (
  SELECT
    `t14`.`wallet`
  FROM (
    SELECT
      `t12`.`wallet`
    FROM (
      SELECT
        `t11`.`wallet`,
        COUNT(*) AS `number`,
        SUM(`t11`.`hi`) AS `hi`,
        SUM(`t11`.`mid`) AS `mid`,
        SUM(`t11`.`lo`) AS `lo`
      FROM (
        SELECT
          `t10`.`hi`,
          `t10`.`mid`,
          `t10`.`lo`,
          `t10`.`wallet`,
          `t10`.`other`
        FROM (
          SELECT
            CAST('0' AS NUMERIC) AS `hi`,
            CAST('0' AS NUMERIC) AS `mid`,
            CAST(`t1`.`count` AS NUMERIC) AS `lo`,
            `t1`.`recipient` AS `wallet`,
            `t1`.`sender` AS `other`
          FROM `project`.`nbext`.`transfers` AS `t1`
          WHERE
            `t1`.`contract` = 4
            AND (
              (
                CAST('0' AS NUMERIC) > 0
              )
              OR (
                (
                  CAST('0' AS NUMERIC) = 0
                )
                AND (
                  (
                    CAST('0' AS NUMERIC) > 0
                  )
                  OR (
                    (
                      CAST('0' AS NUMERIC) = 0
                    ) AND (
                      CAST(`t1`.`count` AS NUMERIC) >= 12
                    )
                  )
                )
              )
            )
        ) AS `t10`
        WHERE
          EXISTS(
            SELECT
              1
            FROM (
              SELECT
                `t0`.`wallet` AS `other`
              FROM `project`.`nbext`.`wallets` AS `t0`
              WHERE
                `t0`.`address` IN ('0x0000000000000000000000000000000000000000')
            ) AS `t6`
            WHERE
              `t10`.`other` = `t6`.`other`
          )
      ) AS `t11`
      GROUP BY
        1
    ) AS `t12`
    WHERE
      `t12`.`number` >= 1
  ) AS `t14`
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
      ) AS `t9`
      WHERE
        `t14`.`wallet` = `t9`.`wallet`
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
