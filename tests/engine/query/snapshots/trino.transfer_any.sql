WITH "matched" AS (
  SELECT
    "t17"."wallet"
  FROM (
    SELECT
      "t15"."wallet"
    FROM (
      SELECT
        "t14"."wallet",
        COUNT(*) AS "number",
        SUM("t14"."hi") AS "hi",
        SUM("t14"."mid") AS "mid",
        SUM("t14"."lo") AS "lo"
      FROM (
        SELECT
          *
        FROM (
          SELECT
            "t4"."hi",
            "t4"."mid",
            "t4"."lo",
            "t4"."recipient" AS "wallet",
            "t4"."sender" AS "other"
          FROM "lake"."nbext"."transfers" AS "t4"
          WHERE
            EXISTS(
              SELECT
                1
              FROM (
                SELECT
                  *
                FROM "lake"."nbext"."contracts" AS "t2"
                WHERE
                  "t2"."chain_id" = 1
              ) AS "t8"
              WHERE
                "t4"."contract" = "t8"."contract"
            )
        ) AS "t11"
        UNION ALL
        SELECT
          *
        FROM (
          SELECT
            *
          FROM (
            SELECT
              "t4"."hi",
              "t4"."mid",
              "t4"."lo",
              "t4"."sender" AS "wallet",
              "t4"."recipient" AS "other"
            FROM "lake"."nbext"."transfers" AS "t4"
            WHERE
              EXISTS(
                SELECT
                  1
                FROM (
                  SELECT
                    *
                  FROM "lake"."nbext"."contracts" AS "t2"
                  WHERE
                    "t2"."chain_id" = 1
                ) AS "t8"
                WHERE
                  "t4"."contract" = "t8"."contract"
              )
          ) AS "t12"
          WHERE
            "t12"."wallet" <> "t12"."other"
        ) AS "t13"
      ) AS "t14"
      GROUP BY
        1
    ) AS "t15"
    WHERE
      "t15"."number" >= 3
  ) AS "t17"
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          "t3"."wallet"
        FROM "lake"."nbext"."wallets" AS "t3"
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
            ) AS "t6"
            WHERE
              "t3"."address" = "t6"."address"
          )
      ) AS "t10"
      WHERE
        "t17"."wallet" = "t10"."wallet"
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
