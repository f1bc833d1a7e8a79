WITH `matched` AS (
  SELECT
    `t2`.`wallet`
  FROM (
    SELECT
      `t1`.`wallet`,
      COUNT(*) AS `number`,
      SUM(`t1`.`hi`) AS `hi`,
      SUM(`t1`.`mid`) AS `mid`,
      SUM(`t1`.`lo`) AS `lo`
    FROM (
      SELECT
        `t0`.`hi`,
        `t0`.`mid`,
        `t0`.`lo`,
        `t0`.`recipient` AS `wallet`,
        `t0`.`sender` AS `other`
      FROM `project`.`nbext`.`transfers` AS `t0`
      WHERE
        `t0`.`contract` = 0 AND `t0`.`block` >= 96
    ) AS `t1`
    GROUP BY
      1
  ) AS `t2`
  WHERE
    `t2`.`number` >= 1
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
