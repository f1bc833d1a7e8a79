WITH `matched` AS (
  SELECT
    `t15`.`wallet`
  FROM (
    SELECT
      `t13`.`wallet`
    FROM (
      SELECT
        `t12`.`wallet`,
        COUNT(*) AS `number`
      FROM (
        SELECT
          *
        FROM (
          SELECT
            `t4`.`contract`,
            `t4`.`wallet`,
            `t4`.`hi`,
            `t4`.`mid`,
            `t4`.`lo`,
            `t4`.`size`
          FROM `project`.`nbext`.`balances` AS `t4`
          WHERE
            EXISTS(
              SELECT
                1
              FROM (
                SELECT
                  *
                FROM `project`.`nbext`.`contracts` AS `t2`
                WHERE
                  `t2`.`chain_id` = 1 AND `t2`.`standard` IN ('ERC721', 'ERC1155')
              ) AS `t8`
              WHERE
                `t4`.`contract` = `t8`.`contract`
            )
        ) AS `t11`
        WHERE
          `t11`.`size` > 0
      ) AS `t12`
      GROUP BY
        1
    ) AS `t13`
    WHERE
      `t13`.`number` >= 1 AND `t13`.`number` <= 2
  ) AS `t15`
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
        `t15`.`wallet` = `t10`.`wallet`
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
