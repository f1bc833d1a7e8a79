WITH `matched` AS (
  SELECT
    `t20`.`wallet`
  FROM (
    SELECT DISTINCT
      *
    FROM (
      SELECT
        *
      FROM (
        SELECT
          `t1`.`wallet`
        FROM `project`.`nbext`.`activity` AS `t1`
        WHERE
          `t1`.`chain_id` = 1 AND `t1`.`first_block` <= 192
      ) AS `t8`
      UNION ALL
      SELECT
        *
      FROM (
        SELECT DISTINCT
          *
        FROM (
          SELECT
            `t12`.`wallet`
          FROM (
            SELECT
              *
            FROM `project`.`nbext`.`history` AS `t0`
            WHERE
              `t0`.`lo` > 0 AND `t0`.`from_block` <= 192 AND `t0`.`to_block` > 192
          ) AS `t12`
          WHERE
            EXISTS(
              SELECT
                1
              FROM (
                SELECT
                  *
                FROM `project`.`nbext`.`contracts` AS `t3`
                WHERE
                  `t3`.`chain_id` = 1 AND `t3`.`standard` = 'ERC721'
              ) AS `t13`
              WHERE
                `t12`.`contract` = `t13`.`contract`
            )
        ) AS `t16`
      ) AS `t17`
    ) AS `t18`
  ) AS `t20`
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          `t0`.`wallet`
        FROM `project`.`nbext`.`history` AS `t0`
        WHERE
          `t0`.`contract` = 4
          AND `t0`.`from_block` <= 192
          AND `t0`.`to_block` > 192
          AND `t0`.`size` >= 1
      ) AS `t11`
      WHERE
        `t20`.`wallet` = `t11`.`wallet`
    )
    AND NOT EXISTS(
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
            ) AS `t9`
            WHERE
              `t4`.`address` = `t9`.`address`
          )
      ) AS `t15`
      WHERE
        `t20`.`wallet` = `t15`.`wallet`
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
