WITH `matched` AS (
  SELECT
    `t17`.`wallet`
  FROM (
    SELECT
      `t15`.`wallet`
    FROM (
      SELECT
        `t14`.`wallet`,
        COUNT(*) AS `number`,
        SUM(`t14`.`hi`) AS `hi`,
        SUM(`t14`.`mid`) AS `mid`,
        SUM(`t14`.`lo`) AS `lo`
      FROM (
        SELECT
          *
        FROM (
          SELECT
            `t4`.`hi`,
            `t4`.`mid`,
            `t4`.`lo`,
            `t4`.`recipient` AS `wallet`,
            `t4`.`sender` AS `other`
          FROM `project`.`nbext`.`transfers` AS `t4`
          WHERE
            EXISTS(
              SELECT
                1
              FROM (
                SELECT
                  *
                FROM `project`.`nbext`.`contracts` AS `t2`
                WHERE
                  `t2`.`chain_id` = 1
              ) AS `t8`
              WHERE
                `t4`.`contract` = `t8`.`contract`
            )
        ) AS `t11`
        UNION ALL
        SELECT
          *
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t4`.`hi`,
              `t4`.`mid`,
              `t4`.`lo`,
              `t4`.`sender` AS `wallet`,
              `t4`.`recipient` AS `other`
            FROM `project`.`nbext`.`transfers` AS `t4`
            WHERE
              EXISTS(
                SELECT
                  1
                FROM (
                  SELECT
                    *
                  FROM `project`.`nbext`.`contracts` AS `t2`
                  WHERE
                    `t2`.`chain_id` = 1
                ) AS `t8`
                WHERE
                  `t4`.`contract` = `t8`.`contract`
              )
          ) AS `t12`
          WHERE
            `t12`.`wallet` <> `t12`.`other`
        ) AS `t13`
      ) AS `t14`
      GROUP BY
        1
    ) AS `t15`
    WHERE
      `t15`.`number` >= 3
  ) AS `t17`
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          `t3`.`wallet`
        FROM `project`.`nbext`.`wallets` AS `t3`
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
              `t3`.`address` = `t6`.`address`
          )
      ) AS `t10`
      WHERE
        `t17`.`wallet` = `t10`.`wallet`
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
