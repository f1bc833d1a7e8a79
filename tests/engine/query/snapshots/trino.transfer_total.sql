WITH "matched" AS (
  SELECT
    "t10"."wallet"
  FROM (
    SELECT
      "t6"."wallet"
    FROM (
      SELECT
        "t4"."wallet",
        COUNT(*) AS "number",
        SUM("t4"."hi") AS "hi",
        SUM("t4"."mid") AS "mid",
        SUM("t4"."lo") AS "lo"
      FROM (
        SELECT
          "t0"."hi",
          "t0"."mid",
          "t0"."lo",
          "t0"."recipient" AS "wallet",
          "t0"."sender" AS "other"
        FROM "lake"."nbext"."transfers" AS "t0"
        WHERE
          "t0"."contract" = 0
      ) AS "t4"
      GROUP BY
        1
    ) AS "t6"
    WHERE
      "t6"."number" >= 1
      AND (
        (
          (
            "t6"."hi" + CAST(CAST(ROUND(
              (
                (
                  "t6"."mid" + CAST(CAST(ROUND(
                    (
                      "t6"."lo" - (
                        (
                          (
                            "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                          ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                        ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                      )
                    ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                    0
                  ) AS BIGINT) AS DECIMAL(38, 0))
                ) - (
                  (
                    (
                      (
                        "t6"."mid" + CAST(CAST(ROUND(
                          (
                            "t6"."lo" - (
                              (
                                (
                                  "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                                ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                              ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                            )
                          ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                          0
                        ) AS BIGINT) AS DECIMAL(38, 0))
                      ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                    ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                )
              ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
              0
            ) AS BIGINT) AS DECIMAL(38, 0))
          ) > 0
        )
        OR (
          (
            (
              "t6"."hi" + CAST(CAST(ROUND(
                (
                  (
                    "t6"."mid" + CAST(CAST(ROUND(
                      (
                        "t6"."lo" - (
                          (
                            (
                              "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                            ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                          ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                        )
                      ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                      0
                    ) AS BIGINT) AS DECIMAL(38, 0))
                  ) - (
                    (
                      (
                        (
                          "t6"."mid" + CAST(CAST(ROUND(
                            (
                              "t6"."lo" - (
                                (
                                  (
                                    "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                                  ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                                ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                              )
                            ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                            0
                          ) AS BIGINT) AS DECIMAL(38, 0))
                        ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                      ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                    ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  )
                ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                0
              ) AS BIGINT) AS DECIMAL(38, 0))
            ) = 0
          )
          AND (
            (
              (
                (
                  (
                    (
                      "t6"."mid" + CAST(CAST(ROUND(
                        (
                          "t6"."lo" - (
                            (
                              (
                                "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                              ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                            ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                          )
                        ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                        0
                      ) AS BIGINT) AS DECIMAL(38, 0))
                    ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
              ) > 0
            )
            OR (
              (
                (
                  (
                    (
                      (
                        "t6"."mid" + CAST(CAST(ROUND(
                          (
                            "t6"."lo" - (
                              (
                                (
                                  "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                                ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                              ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                            )
                          ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                          0
                        ) AS BIGINT) AS DECIMAL(38, 0))
                      ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                    ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                ) = 0
              )
              AND (
                (
                  (
                    (
                      "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                    ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                ) >= 4000000000
              )
            )
          )
        )
      )
      AND (
        (
          (
            "t6"."hi" + CAST(CAST(ROUND(
              (
                (
                  "t6"."mid" + CAST(CAST(ROUND(
                    (
                      "t6"."lo" - (
                        (
                          (
                            "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                          ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                        ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                      )
                    ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                    0
                  ) AS BIGINT) AS DECIMAL(38, 0))
                ) - (
                  (
                    (
                      (
                        "t6"."mid" + CAST(CAST(ROUND(
                          (
                            "t6"."lo" - (
                              (
                                (
                                  "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                                ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                              ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                            )
                          ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                          0
                        ) AS BIGINT) AS DECIMAL(38, 0))
                      ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                    ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                )
              ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
              0
            ) AS BIGINT) AS DECIMAL(38, 0))
          ) < 0
        )
        OR (
          (
            (
              "t6"."hi" + CAST(CAST(ROUND(
                (
                  (
                    "t6"."mid" + CAST(CAST(ROUND(
                      (
                        "t6"."lo" - (
                          (
                            (
                              "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                            ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                          ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                        )
                      ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                      0
                    ) AS BIGINT) AS DECIMAL(38, 0))
                  ) - (
                    (
                      (
                        (
                          "t6"."mid" + CAST(CAST(ROUND(
                            (
                              "t6"."lo" - (
                                (
                                  (
                                    "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                                  ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                                ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                              )
                            ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                            0
                          ) AS BIGINT) AS DECIMAL(38, 0))
                        ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                      ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                    ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  )
                ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                0
              ) AS BIGINT) AS DECIMAL(38, 0))
            ) = 0
          )
          AND (
            (
              (
                (
                  (
                    (
                      "t6"."mid" + CAST(CAST(ROUND(
                        (
                          "t6"."lo" - (
                            (
                              (
                                "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                              ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                            ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                          )
                        ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                        0
                      ) AS BIGINT) AS DECIMAL(38, 0))
                    ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
              ) < 0
            )
            OR (
              (
                (
                  (
                    (
                      (
                        "t6"."mid" + CAST(CAST(ROUND(
                          (
                            "t6"."lo" - (
                              (
                                (
                                  "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                                ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                              ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                            )
                          ) / CAST('100000000000000000000000000' AS DECIMAL(38, 0)),
                          0
                        ) AS BIGINT) AS DECIMAL(38, 0))
                      ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                    ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                ) = 0
              )
              AND (
                (
                  (
                    (
                      "t6"."lo" % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                    ) + CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                  ) % CAST('100000000000000000000000000' AS DECIMAL(38, 0))
                ) <= 9999000000
              )
            )
          )
        )
      )
  ) AS "t10"
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          "t2"."wallet"
        FROM "lake"."nbext"."wallets" AS "t2"
        WHERE
          EXISTS(
            SELECT
              1
            FROM (
              SELECT
                IF(_u.pos = _u_2.pos_2, _u_2."address") AS "address"
              FROM UNNEST(SEQUENCE(
                1,
                GREATEST(
                  CARDINALITY(
                    ARRAY['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']
                  )
                )
              )) AS _u(pos)
              CROSS JOIN UNNEST(ARRAY['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']) WITH ORDINALITY AS _u_2("address", pos_2)
              WHERE
                _u.pos = _u_2.pos_2
                OR (
                  _u.pos > CARDINALITY(
                    ARRAY['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']
                  )
                  AND _u_2.pos_2 = CARDINALITY(
                    ARRAY['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']
                  )
                )
            ) AS "t5"
            WHERE
              "t2"."address" = "t5"."address"
          )
      ) AS "t8"
      WHERE
        "t10"."wallet" = "t8"."wallet"
    )
), "returned" AS (
  SELECT
    *
  FROM "matched" AS "t0"
  ORDER BY
    "t0"."wallet" ASC
  LIMIT 100
)
SELECT
  "t5"."address",
  (
    SELECT
      COUNT(*)
    FROM "matched"
  ) AS "matched"
FROM (
  SELECT
    "t4"."wallet",
    "t4"."address"
  FROM (
    SELECT
      "t0"."wallet",
      "t0"."address"
    FROM "lake"."nbext"."wallets" AS "t0"
  ) AS "t4"
  WHERE
    EXISTS(
      SELECT
        1
      FROM "returned" AS "t2"
      WHERE
        "t4"."wallet" = "t2"."wallet"
    )
) AS "t5"
ORDER BY
  "t5"."address" ASC
