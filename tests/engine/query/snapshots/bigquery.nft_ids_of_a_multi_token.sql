WITH `matched` AS (
  SELECT
    `t15`.`wallet`
  FROM (
    SELECT
      `t13`.`wallet`
    FROM (
      SELECT
        `t12`.`wallet`,
        SUM(`t12`.`count`) AS `count`
      FROM (
        SELECT
          `t7`.`contract`,
          `t7`.`id_hi`,
          `t7`.`id_mid`,
          `t7`.`id_lo`,
          `t7`.`wallet`,
          `t7`.`count`
        FROM (
          SELECT
            *
          FROM `project`.`nbext`.`owners` AS `t1`
          WHERE
            `t1`.`contract` = 4 AND `t1`.`id_hi` = 0 AND `t1`.`id_mid` = 0
        ) AS `t7`
        WHERE
          EXISTS(
            SELECT
              1
            FROM (
              SELECT
                CAST(`t4`.`listed` AS NUMERIC) AS `listed`
              FROM (
                SELECT
                  IF(pos = pos_2, `listed`, NULL) AS `listed`
                FROM UNNEST(GENERATE_ARRAY(0, GREATEST(ARRAY_LENGTH([1])) - 1)) AS pos
                CROSS JOIN UNNEST([1]) AS `listed` WITH OFFSET AS pos_2
                WHERE
                  pos = pos_2
                  OR (
                    pos > (
                      ARRAY_LENGTH([1]) - 1
                    ) AND pos_2 = (
                      ARRAY_LENGTH([1]) - 1
                    )
                  )
              ) AS `t4`
            ) AS `t9`
            WHERE
              `t7`.`id_lo` = `t9`.`listed`
          )
      ) AS `t12`
      GROUP BY
        1
    ) AS `t13`
    WHERE
      `t13`.`count` >= 6
  ) AS `t15`
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
      ) AS `t11`
      WHERE
        `t15`.`wallet` = `t11`.`wallet`
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
  `t10`.`GAME_count`,
  (
    SELECT
      COUNT(*)
    FROM `matched`
  ) AS `matched`
FROM (
  SELECT
    `t5`.`wallet`,
    `t5`.`address`,
    `t9`.`GAME_count`
  FROM (
    SELECT
      `t0`.`wallet`,
      `t0`.`address`
    FROM `project`.`nbext`.`wallets` AS `t0`
  ) AS `t5`
  LEFT OUTER JOIN (
    SELECT
      `t7`.`wallet`,
      `t7`.`GAME_count`
    FROM (
      SELECT
        `t2`.`wallet`,
        `t2`.`size` AS `GAME_count`
      FROM `project`.`nbext`.`balances` AS `t2`
      WHERE
        `t2`.`contract` = 4
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
