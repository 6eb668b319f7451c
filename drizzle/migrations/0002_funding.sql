CREATE TABLE "faucet_grants" (
	"account" text PRIMARY KEY NOT NULL,
	"claim" uuid DEFAULT gen_random_uuid() NOT NULL,
	"amount" bigint NOT NULL,
	"status" text DEFAULT 'claimed' NOT NULL,
	"claimed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"faucet" text,
	"envelope" text,
	"hash" text,
	"sequence" bigint,
	"max_time" bigint,
	"since_ledger" integer,
	"result_code" text,
	"contract_error" integer,
	"settled_at" timestamp with time zone,
	CONSTRAINT "faucet_grants_hash_unique" UNIQUE("hash"),
	CONSTRAINT "faucet_grants_status" CHECK ("faucet_grants"."status" in ('claimed', 'signed', 'granted', 'returned', 'lost')),
	CONSTRAINT "faucet_grants_amount" CHECK ("faucet_grants"."amount" > 0),
	CONSTRAINT "faucet_grants_settled" CHECK (("faucet_grants"."status" in ('granted', 'returned', 'lost')) = ("faucet_grants"."settled_at" is not null)),
	CONSTRAINT "faucet_grants_signed" CHECK ("faucet_grants"."status" not in ('signed', 'granted', 'lost') or num_nulls("faucet_grants"."faucet", "faucet_grants"."envelope", "faucet_grants"."hash", "faucet_grants"."sequence", "faucet_grants"."max_time", "faucet_grants"."since_ledger") = 0)
);
--> statement-breakpoint
CREATE TABLE "leases" (
	"account" text PRIMARY KEY NOT NULL,
	"holder" text NOT NULL,
	"until" timestamp with time zone NOT NULL,
	"token" bigint NOT NULL,
	CONSTRAINT "leases_token" CHECK ("leases"."token" > 0)
);
--> statement-breakpoint
CREATE UNIQUE INDEX "faucet_grants_one_at_a_time" ON "faucet_grants" USING btree ("faucet") WHERE "faucet_grants"."status" = 'signed';--> statement-breakpoint
CREATE INDEX "faucet_grants_open" ON "faucet_grants" USING btree ("claimed_at") WHERE "faucet_grants"."status" in ('claimed', 'signed');