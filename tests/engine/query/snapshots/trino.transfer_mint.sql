WITH "matched" AS (
  SELECT
    "t14"."wallet"
  FROM (
    SELECT
      "t12"."wallet"
    FROM (
      SELECT
        "t11"."wallet",
        COUNT(*) AS "number",
        SUM("t11"."hi") AS "hi",
        SUM("t11"."mid") AS "mid",
        SUM("t11"."lo") AS "lo"
      FROM (
        SELECT
          "t10"."hi",
          "t10"."mid",
          "t10"."lo",
          "t10"."wallet",
          "t10"."other"
        FROM (
          SELECT
            CAST('0' AS DECIMAL(38, 0)) AS "hi",
            CAST('0' AS DECIMAL(38, 0)) AS "mid",
            CAST("t1"."count" AS DECIMAL(38, 0)) AS "lo",
            "t1"."recipient" AS "wallet",
            "t1"."sender" AS "other"
          FROM "lake"."nbext"."transfers" AS "t1"
          WHERE
            "t1"."contract" = 4
            AND (
              (
                CAST('0' AS DECIMAL(38, 0)) > 0
              )
              OR (
                (
                  CAST('0' AS DECIMAL(38, 0)) = 0
                )
                AND (
                  (
                    CAST('0' AS DECIMAL(38, 0)) > 0
                  )
                  OR (
                    (
                      CAST('0' AS DECIMAL(38, 0)) = 0
                    )
                    AND (
                      CAST("t1"."count" AS DECIMAL(38, 0)) >= 12
                    )
                  )
                )
              )
            )
        ) AS "t10"
        WHERE
          EXISTS(
            SELECT
              1
            FROM (
              SELECT
                "t0"."wallet" AS "other"
              FROM "lake"."nbext"."wallets" AS "t0"
              WHERE
                "t0"."address" IN ('0x0000000000000000000000000000000000000000')
            ) AS "t6"
            WHERE
              "t10"."other" = "t6"."other"
          )
      ) AS "t11"
      GROUP BY
        1
    ) AS "t12"
    WHERE
      "t12"."number" >= 1
  ) AS "t14"
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
      ) AS "t9"
      WHERE
        "t14"."wallet" = "t9"."wallet"
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
