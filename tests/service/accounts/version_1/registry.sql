BEGIN TRANSACTION;
CREATE TABLE idempotency (
    key_id TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, segment TEXT NOT NULL, created_at REAL NOT NULL,
    PRIMARY KEY (key_id, name)
) STRICT;
INSERT INTO "idempotency" VALUES('owner','one','e87debde47739407570c247baa4ecdcb5c35244edf542fdbd7533edde57d9b71','sg_Vv-nExFkkn5BJgXIPIZ3_QLU',1.79532794957935547828e+09);
CREATE TABLE keys (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL,
    rate TEXT, created_at REAL NOT NULL, revoked_at REAL
) STRICT;
INSERT INTO "keys" VALUES('72216cd9d07e','ada','933982024b1791e300629192ab48d4ae81634b645bad742e77bc2a51b4adbd45','execute read','5/second',1.79532794922100472447e+09,NULL);
INSERT INTO "keys" VALUES('1ae1c28a2d19','bob','a6acf51ee940e4bcd9dcdf5e813cecb3d1fbcd54f47910fa9be0395f36f7577e','execute read signup','600/minute',1.79532794923691892629e+09,1.79532794924558258059e+09);
CREATE TABLE segments (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, request TEXT NOT NULL, facts TEXT NOT NULL,
    fingerprint TEXT NOT NULL, matched INTEGER, returned INTEGER, preview TEXT, error TEXT,
    created_at REAL NOT NULL, started_at REAL, completed_at REAL, used_at REAL NOT NULL,
    file TEXT, size INTEGER, sha256 TEXT, owner TEXT, cancel INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO "segments" VALUES('sg_Vv-nExFkkn5BJgXIPIZ3_QLU','completed','{"operator":"AND","filters":{"token":{"token":"USDC","balance":{"min":"1"}}},"fileType":"json","limit":5}','{"chain":"ethereum","chainId":1,"asOf":{"block":24136000,"timestamp":"2026-01-01T00:00:00Z"},"columns":[{"name":"address","type":"string"},{"name":"USDC_balance","type":"uint256","symbol":"USDC","chain":"ethereum","address":"0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48","decimals":6}],"warnings":[]}','8e04ee55e175aa95ae362844a681041030916762d6285dfa5278ce529247d50a',730,5,'[{"address":"0x0003b5b0fd3d9b7b5ab2dfd3ca63fb786317b740","USDC_balance":"200000000000"},{"address":"0x002882429476524714f5c32183aba3547560691d","USDC_balance":"375000000"},{"address":"0x006ead3a499388cf080c039f97da2ae62b5c7297","USDC_balance":"921000928"},{"address":"0x0077cf04acb00a3eb9ef503ec74f160c4a31fd81","USDC_balance":"85000000"},{"address":"0x00f664b14b7acd5c96fe28c0172299b7d477b390","USDC_balance":"279500000"}]',NULL,1.79532794957935547828e+09,1.79532794959297847749e+09,1.79532795003730535508e+09,1.79532795003730535508e+09,'0cc377f1ac47317b6bb7ce4f.arrow',1042,'8b4308a0d9a5616b0696722eb2fd42f718d33aeb3b02752166bf91ad63ecf743',NULL,0);
INSERT INTO "segments" VALUES('sg_tKr7U2F5BNTL3RTXbU3ZoUhQ','queued','{"operator":"AND","filters":{"token":{"token":"USDC","balance":{"min":"1"}}},"fileType":"json","limit":4}','{"chain":"ethereum","chainId":1,"asOf":{"block":24136000,"timestamp":"2026-01-01T00:00:00Z"},"columns":[{"name":"address","type":"string"},{"name":"USDC_balance","type":"uint256","symbol":"USDC","chain":"ethereum","address":"0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48","decimals":6}],"warnings":[]}','8e04ee55e175aa95ae362844a681041030916762d6285dfa5278ce529247d50a',NULL,NULL,NULL,NULL,1.7953279500541949272e+09,NULL,NULL,1.79532795012340784068e+09,NULL,NULL,NULL,NULL,0);
CREATE TABLE signups (
    address TEXT PRIMARY KEY, email TEXT NOT NULL, consented_at REAL NOT NULL
) STRICT;
INSERT INTO "signups" VALUES('ann@example.com','Ann@example.com',1.79532795004982972152e+09);
CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked_at IS NULL;
CREATE INDEX segments_by_status ON segments (status, used_at);
COMMIT;
PRAGMA user_version = 1;
