WITH "matched" AS (
  SELECT
    "t11"."wallet"
  FROM (
    SELECT DISTINCT
      *
    FROM (
      SELECT
        *
      FROM (
        SELECT
          "t0"."wallet"
        FROM "lake"."nbext"."balances" AS "t0"
        WHERE
          "t0"."contract" = 2 AND "t0"."size" >= 1
      ) AS "t5"
      UNION ALL
      SELECT
        *
      FROM (
        SELECT
          "t0"."wallet"
        FROM "lake"."nbext"."balances" AS "t0"
        WHERE
          "t0"."contract" = 3 AND "t0"."size" >= 1
      ) AS "t6"
    ) AS "t9"
  ) AS "t11"
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          "t0"."wallet"
        FROM "lake"."nbext"."balances" AS "t0"
        WHERE
          "t0"."contract" = 1 AND "t0"."size" >= 1
      ) AS "t8"
      WHERE
        "t11"."wallet" = "t8"."wallet"
    )
    AND NOT EXISTS(
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
            ) AS "t7"
            WHERE
              "t2"."address" = "t7"."address"
          )
      ) AS "t13"
      WHERE
        "t11"."wallet" = "t13"."wallet"
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
  "t14"."address",
  "t14"."BAYC_count",
  "t14"."PUNK_count",
  (
    SELECT
      COUNT(*)
    FROM "matched"
  ) AS "matched"
FROM (
  SELECT
    "t5"."wallet",
    "t5"."address",
    "t12"."BAYC_count",
    "t13"."PUNK_count"
  FROM (
    SELECT
      "t0"."wallet",
      "t0"."address"
    FROM "lake"."nbext"."wallets" AS "t0"
  ) AS "t5"
  LEFT OUTER JOIN (
    SELECT
      "t8"."wallet",
      "t8"."BAYC_count"
    FROM (
      SELECT
        "t2"."wallet",
        "t2"."size" AS "BAYC_count"
      FROM "lake"."nbext"."balances" AS "t2"
      WHERE
        "t2"."contract" = 2
    ) AS "t8"
    WHERE
      EXISTS(
        SELECT
          1
        FROM "returned" AS "t3"
        WHERE
          "t8"."wallet" = "t3"."wallet"
      )
  ) AS "t12"
    ON "t5"."wallet" = "t12"."wallet"
  LEFT OUTER JOIN (
    SELECT
      "t9"."wallet",
      "t9"."PUNK_count"
    FROM (
      SELECT
        "t2"."wallet",
        "t2"."size" AS "PUNK_count"
      FROM "lake"."nbext"."balances" AS "t2"
      WHERE
        "t2"."contract" = 3
    ) AS "t9"
    WHERE
      EXISTS(
        SELECT
          1
        FROM "returned" AS "t3"
        WHERE
          "t9"."wallet" = "t3"."wallet"
      )
  ) AS "t13"
    ON "t5"."wallet" = "t13"."wallet"
  WHERE
    EXISTS(
      SELECT
        1
      FROM "returned" AS "t3"
      WHERE
        "t5"."wallet" = "t3"."wallet"
    )
) AS "t14"
ORDER BY
  "t14"."address" ASC
