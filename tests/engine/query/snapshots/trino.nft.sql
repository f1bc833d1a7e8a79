WITH "matched" AS (
  SELECT
    "t6"."wallet"
  FROM (
    SELECT
      "t0"."wallet"
    FROM "lake"."nbext"."balances" AS "t0"
    WHERE
      "t0"."contract" = 2 AND "t0"."size" >= 1
  ) AS "t6"
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
        "t6"."wallet" = "t8"."wallet"
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
  "t10"."address",
  "t10"."BAYC_count",
  (
    SELECT
      COUNT(*)
    FROM "matched"
  ) AS "matched"
FROM (
  SELECT
    "t5"."wallet",
    "t5"."address",
    "t9"."BAYC_count"
  FROM (
    SELECT
      "t0"."wallet",
      "t0"."address"
    FROM "lake"."nbext"."wallets" AS "t0"
  ) AS "t5"
  LEFT OUTER JOIN (
    SELECT
      "t7"."wallet",
      "t7"."BAYC_count"
    FROM (
      SELECT
        "t2"."wallet",
        "t2"."size" AS "BAYC_count"
      FROM "lake"."nbext"."balances" AS "t2"
      WHERE
        "t2"."contract" = 2 AND "t2"."size" >= 1
    ) AS "t7"
    WHERE
      EXISTS(
        SELECT
          1
        FROM "returned" AS "t3"
        WHERE
          "t7"."wallet" = "t3"."wallet"
      )
  ) AS "t9"
    ON "t5"."wallet" = "t9"."wallet"
  WHERE
    EXISTS(
      SELECT
        1
      FROM "returned" AS "t3"
      WHERE
        "t5"."wallet" = "t3"."wallet"
    )
) AS "t10"
ORDER BY
  "t10"."address" ASC
