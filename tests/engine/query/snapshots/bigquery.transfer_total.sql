WITH `matched` AS (
  SELECT
    `t10`.`wallet`
  FROM (
    SELECT
      `t6`.`wallet`
    FROM (
      SELECT
        `t4`.`wallet`,
        COUNT(*) AS `number`,
        SUM(`t4`.`hi`) AS `hi`,
        SUM(`t4`.`mid`) AS `mid`,
        SUM(`t4`.`lo`) AS `lo`
      FROM (
        SELECT
          `t0`.`hi`,
          `t0`.`mid`,
          `t0`.`lo`,
          `t0`.`recipient` AS `wallet`,
          `t0`.`sender` AS `other`
        FROM `project`.`nbext`.`transfers` AS `t0`
        WHERE
          `t0`.`contract` = 0
      ) AS `t4`
      GROUP BY
        1
    ) AS `t6`
    WHERE
      `t6`.`number` >= 1
      AND (
        (
          (
            `t6`.`hi` + CAST(CAST(ROUND(
              ieee_divide(
                (
                  `t6`.`mid` + CAST(CAST(ROUND(
                    ieee_divide(
                      `t6`.`lo` - (
                        MOD(
                          (
                            MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                          ) + CAST('100000000000000000000000000' AS NUMERIC),
                          CAST('100000000000000000000000000' AS NUMERIC)
                        )
                      ),
                      CAST('100000000000000000000000000' AS NUMERIC)
                    ),
                    0
                  ) AS INT64) AS NUMERIC)
                ) - (
                  MOD(
                    (
                      MOD(
                        `t6`.`mid` + CAST(CAST(ROUND(
                          ieee_divide(
                            `t6`.`lo` - (
                              MOD(
                                (
                                  MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                                ) + CAST('100000000000000000000000000' AS NUMERIC),
                                CAST('100000000000000000000000000' AS NUMERIC)
                              )
                            ),
                            CAST('100000000000000000000000000' AS NUMERIC)
                          ),
                          0
                        ) AS INT64) AS NUMERIC),
                        CAST('100000000000000000000000000' AS NUMERIC)
                      )
                    ) + CAST('100000000000000000000000000' AS NUMERIC),
                    CAST('100000000000000000000000000' AS NUMERIC)
                  )
                ),
                CAST('100000000000000000000000000' AS NUMERIC)
              ),
              0
            ) AS INT64) AS NUMERIC)
          ) > 0
        )
        OR (
          (
            (
              `t6`.`hi` + CAST(CAST(ROUND(
                ieee_divide(
                  (
                    `t6`.`mid` + CAST(CAST(ROUND(
                      ieee_divide(
                        `t6`.`lo` - (
                          MOD(
                            (
                              MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                            ) + CAST('100000000000000000000000000' AS NUMERIC),
                            CAST('100000000000000000000000000' AS NUMERIC)
                          )
                        ),
                        CAST('100000000000000000000000000' AS NUMERIC)
                      ),
                      0
                    ) AS INT64) AS NUMERIC)
                  ) - (
                    MOD(
                      (
                        MOD(
                          `t6`.`mid` + CAST(CAST(ROUND(
                            ieee_divide(
                              `t6`.`lo` - (
                                MOD(
                                  (
                                    MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                                  ) + CAST('100000000000000000000000000' AS NUMERIC),
                                  CAST('100000000000000000000000000' AS NUMERIC)
                                )
                              ),
                              CAST('100000000000000000000000000' AS NUMERIC)
                            ),
                            0
                          ) AS INT64) AS NUMERIC),
                          CAST('100000000000000000000000000' AS NUMERIC)
                        )
                      ) + CAST('100000000000000000000000000' AS NUMERIC),
                      CAST('100000000000000000000000000' AS NUMERIC)
                    )
                  ),
                  CAST('100000000000000000000000000' AS NUMERIC)
                ),
                0
              ) AS INT64) AS NUMERIC)
            ) = 0
          )
          AND (
            (
              (
                MOD(
                  (
                    MOD(
                      `t6`.`mid` + CAST(CAST(ROUND(
                        ieee_divide(
                          `t6`.`lo` - (
                            MOD(
                              (
                                MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                              ) + CAST('100000000000000000000000000' AS NUMERIC),
                              CAST('100000000000000000000000000' AS NUMERIC)
                            )
                          ),
                          CAST('100000000000000000000000000' AS NUMERIC)
                        ),
                        0
                      ) AS INT64) AS NUMERIC),
                      CAST('100000000000000000000000000' AS NUMERIC)
                    )
                  ) + CAST('100000000000000000000000000' AS NUMERIC),
                  CAST('100000000000000000000000000' AS NUMERIC)
                )
              ) > 0
            )
            OR (
              (
                (
                  MOD(
                    (
                      MOD(
                        `t6`.`mid` + CAST(CAST(ROUND(
                          ieee_divide(
                            `t6`.`lo` - (
                              MOD(
                                (
                                  MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                                ) + CAST('100000000000000000000000000' AS NUMERIC),
                                CAST('100000000000000000000000000' AS NUMERIC)
                              )
                            ),
                            CAST('100000000000000000000000000' AS NUMERIC)
                          ),
                          0
                        ) AS INT64) AS NUMERIC),
                        CAST('100000000000000000000000000' AS NUMERIC)
                      )
                    ) + CAST('100000000000000000000000000' AS NUMERIC),
                    CAST('100000000000000000000000000' AS NUMERIC)
                  )
                ) = 0
              )
              AND (
                (
                  MOD(
                    (
                      MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                    ) + CAST('100000000000000000000000000' AS NUMERIC),
                    CAST('100000000000000000000000000' AS NUMERIC)
                  )
                ) >= 4000000000
              )
            )
          )
        )
      )
      AND (
        (
          (
            `t6`.`hi` + CAST(CAST(ROUND(
              ieee_divide(
                (
                  `t6`.`mid` + CAST(CAST(ROUND(
                    ieee_divide(
                      `t6`.`lo` - (
                        MOD(
                          (
                            MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                          ) + CAST('100000000000000000000000000' AS NUMERIC),
                          CAST('100000000000000000000000000' AS NUMERIC)
                        )
                      ),
                      CAST('100000000000000000000000000' AS NUMERIC)
                    ),
                    0
                  ) AS INT64) AS NUMERIC)
                ) - (
                  MOD(
                    (
                      MOD(
                        `t6`.`mid` + CAST(CAST(ROUND(
                          ieee_divide(
                            `t6`.`lo` - (
                              MOD(
                                (
                                  MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                                ) + CAST('100000000000000000000000000' AS NUMERIC),
                                CAST('100000000000000000000000000' AS NUMERIC)
                              )
                            ),
                            CAST('100000000000000000000000000' AS NUMERIC)
                          ),
                          0
                        ) AS INT64) AS NUMERIC),
                        CAST('100000000000000000000000000' AS NUMERIC)
                      )
                    ) + CAST('100000000000000000000000000' AS NUMERIC),
                    CAST('100000000000000000000000000' AS NUMERIC)
                  )
                ),
                CAST('100000000000000000000000000' AS NUMERIC)
              ),
              0
            ) AS INT64) AS NUMERIC)
          ) < 0
        )
        OR (
          (
            (
              `t6`.`hi` + CAST(CAST(ROUND(
                ieee_divide(
                  (
                    `t6`.`mid` + CAST(CAST(ROUND(
                      ieee_divide(
                        `t6`.`lo` - (
                          MOD(
                            (
                              MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                            ) + CAST('100000000000000000000000000' AS NUMERIC),
                            CAST('100000000000000000000000000' AS NUMERIC)
                          )
                        ),
                        CAST('100000000000000000000000000' AS NUMERIC)
                      ),
                      0
                    ) AS INT64) AS NUMERIC)
                  ) - (
                    MOD(
                      (
                        MOD(
                          `t6`.`mid` + CAST(CAST(ROUND(
                            ieee_divide(
                              `t6`.`lo` - (
                                MOD(
                                  (
                                    MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                                  ) + CAST('100000000000000000000000000' AS NUMERIC),
                                  CAST('100000000000000000000000000' AS NUMERIC)
                                )
                              ),
                              CAST('100000000000000000000000000' AS NUMERIC)
                            ),
                            0
                          ) AS INT64) AS NUMERIC),
                          CAST('100000000000000000000000000' AS NUMERIC)
                        )
                      ) + CAST('100000000000000000000000000' AS NUMERIC),
                      CAST('100000000000000000000000000' AS NUMERIC)
                    )
                  ),
                  CAST('100000000000000000000000000' AS NUMERIC)
                ),
                0
              ) AS INT64) AS NUMERIC)
            ) = 0
          )
          AND (
            (
              (
                MOD(
                  (
                    MOD(
                      `t6`.`mid` + CAST(CAST(ROUND(
                        ieee_divide(
                          `t6`.`lo` - (
                            MOD(
                              (
                                MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                              ) + CAST('100000000000000000000000000' AS NUMERIC),
                              CAST('100000000000000000000000000' AS NUMERIC)
                            )
                          ),
                          CAST('100000000000000000000000000' AS NUMERIC)
                        ),
                        0
                      ) AS INT64) AS NUMERIC),
                      CAST('100000000000000000000000000' AS NUMERIC)
                    )
                  ) + CAST('100000000000000000000000000' AS NUMERIC),
                  CAST('100000000000000000000000000' AS NUMERIC)
                )
              ) < 0
            )
            OR (
              (
                (
                  MOD(
                    (
                      MOD(
                        `t6`.`mid` + CAST(CAST(ROUND(
                          ieee_divide(
                            `t6`.`lo` - (
                              MOD(
                                (
                                  MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                                ) + CAST('100000000000000000000000000' AS NUMERIC),
                                CAST('100000000000000000000000000' AS NUMERIC)
                              )
                            ),
                            CAST('100000000000000000000000000' AS NUMERIC)
                          ),
                          0
                        ) AS INT64) AS NUMERIC),
                        CAST('100000000000000000000000000' AS NUMERIC)
                      )
                    ) + CAST('100000000000000000000000000' AS NUMERIC),
                    CAST('100000000000000000000000000' AS NUMERIC)
                  )
                ) = 0
              )
              AND (
                (
                  MOD(
                    (
                      MOD(`t6`.`lo`, CAST('100000000000000000000000000' AS NUMERIC))
                    ) + CAST('100000000000000000000000000' AS NUMERIC),
                    CAST('100000000000000000000000000' AS NUMERIC)
                  )
                ) <= 9999000000
              )
            )
          )
        )
      )
  ) AS `t10`
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
        `t10`.`wallet` = `t8`.`wallet`
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
