WITH `matched` AS (
  SELECT
    `t9`.`wallet`
  FROM (
    SELECT DISTINCT
      *
    FROM (
      SELECT
        *
      FROM (
        SELECT
          `t0`.`wallet`
        FROM `project`.`nbext`.`balances` AS `t0`
        WHERE
          `t0`.`contract` = 4 AND `t0`.`size` >= 1
      ) AS `t4`
      UNION ALL
      SELECT
        *
      FROM (
        SELECT
          `t0`.`wallet`
        FROM `project`.`nbext`.`balances` AS `t0`
        WHERE
          `t0`.`contract` = 2 AND `t0`.`size` >= 1
      ) AS `t5`
    ) AS `t7`
  ) AS `t9`
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
        `t9`.`wallet` = `t11`.`wallet`
    )
), `returned` AS (
  SELECT
    `t5`.`wallet`
  FROM (
    SELECT
      `t2`.`wallet`,
      `t4`.`wallet` AS `wallet_right`,
      `t4`.`size`
    FROM `matched` AS `t2`
    LEFT OUTER JOIN (
      SELECT
        `t1`.`wallet`,
        `t1`.`size`
      FROM `project`.`nbext`.`balances` AS `t1`
      WHERE
        `t1`.`contract` = 4
    ) AS `t4`
      ON `t2`.`wallet` = `t4`.`wallet`
  ) AS `t5`
  ORDER BY
    COALESCE(`t5`.`size`, 0) ASC NULLS LAST,
    `t5`.`wallet` ASC NULLS LAST
  LIMIT 100
)
SELECT
  `t14`.`address`,
  `t14`.`GAME_count`,
  `t14`.`BAYC_count`,
  (
    SELECT
      COUNT(*)
    FROM `matched`
  ) AS `matched`
FROM (
  SELECT
    `t5`.`wallet`,
    `t5`.`address`,
    `t12`.`GAME_count`,
    `t13`.`BAYC_count`
  FROM (
    SELECT
      `t0`.`wallet`,
      `t0`.`address`
    FROM `project`.`nbext`.`wallets` AS `t0`
  ) AS `t5`
  LEFT OUTER JOIN (
    SELECT
      `t8`.`wallet`,
      `t8`.`GAME_count`
    FROM (
      SELECT
        `t2`.`wallet`,
        `t2`.`size` AS `GAME_count`
      FROM `project`.`nbext`.`balances` AS `t2`
      WHERE
        `t2`.`contract` = 4
    ) AS `t8`
    WHERE
      EXISTS(
        SELECT
          1
        FROM `returned` AS `t3`
        WHERE
          `t8`.`wallet` = `t3`.`wallet`
      )
  ) AS `t12`
    ON `t5`.`wallet` = `t12`.`wallet`
  LEFT OUTER JOIN (
    SELECT
      `t9`.`wallet`,
      `t9`.`BAYC_count`
    FROM (
      SELECT
        `t2`.`wallet`,
        `t2`.`size` AS `BAYC_count`
      FROM `project`.`nbext`.`balances` AS `t2`
      WHERE
        `t2`.`contract` = 2
    ) AS `t9`
    WHERE
      EXISTS(
        SELECT
          1
        FROM `returned` AS `t3`
        WHERE
          `t9`.`wallet` = `t3`.`wallet`
      )
  ) AS `t13`
    ON `t5`.`wallet` = `t13`.`wallet`
  WHERE
    EXISTS(
      SELECT
        1
      FROM `returned` AS `t3`
      WHERE
        `t5`.`wallet` = `t3`.`wallet`
    )
) AS `t14`
ORDER BY
  `t14`.`address` ASC NULLS LAST
