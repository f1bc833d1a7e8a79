WITH `matched` AS (
  SELECT
    `t12`.`wallet`
  FROM (
    SELECT
      `t8`.`wallet`
    FROM (
      SELECT
        `t7`.`wallet`,
        COUNT(*) AS `number`,
        SUM(`t7`.`hi`) AS `hi`,
        SUM(`t7`.`mid`) AS `mid`,
        SUM(`t7`.`lo`) AS `lo`
      FROM (
        SELECT
          *
        FROM (
          SELECT
            `t1`.`hi`,
            `t1`.`mid`,
            `t1`.`lo`,
            `t1`.`recipient` AS `wallet`,
            `t1`.`sender` AS `other`
          FROM `project`.`nbext`.`transfers` AS `t1`
          WHERE
            `t1`.`contract` = 0 AND `t1`.`block` >= 96 AND `t1`.`block` <= 144
        ) AS `t4`
        UNION ALL
        SELECT
          *
        FROM (
          SELECT
            `t1`.`hi`,
            `t1`.`mid`,
            `t1`.`lo`,
            `t1`.`sender` AS `wallet`,
            `t1`.`recipient` AS `other`
          FROM `project`.`nbext`.`transfers` AS `t1`
          WHERE
            `t1`.`contract` = 0
            AND `t1`.`block` >= 96
            AND `t1`.`block` <= 144
            AND `t1`.`sender` <> `t1`.`recipient`
        ) AS `t5`
      ) AS `t7`
      GROUP BY
        1
    ) AS `t8`
    WHERE
      `t8`.`number` >= 1
  ) AS `t12`
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
            ) AS `t6`
            WHERE
              `t2`.`address` = `t6`.`address`
          )
      ) AS `t10`
      WHERE
        `t12`.`wallet` = `t10`.`wallet`
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
