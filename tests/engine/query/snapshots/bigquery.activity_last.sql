WITH `matched` AS (
  SELECT
    `t6`.`wallet`
  FROM (
    SELECT
      `t0`.`wallet`
    FROM `project`.`nbext`.`activity` AS `t0`
    WHERE
      `t0`.`chain_id` = 1 AND `t0`.`last_block` >= 168
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
