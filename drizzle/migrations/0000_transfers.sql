CREATE TABLE "quotas" (
	"account" text NOT NULL,
	"day" text NOT NULL,
	"held" bigint DEFAULT 0 NOT NULL,
	"used" bigint DEFAULT 0 NOT NULL,
	"count" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "quotas_account_day_pk" PRIMARY KEY("account","day"),
	CONSTRAINT "quotas_held" CHECK ("quotas"."held" >= 0),
	CONSTRAINT "quotas_used" CHECK ("quotas"."used" >= 0),
	CONSTRAINT "quotas_count" CHECK ("quotas"."count" >= 0)
);
--> statement-breakpoint
CREATE TABLE "sponsor_floats" (
	"sponsor" text PRIMARY KEY NOT NULL,
	"held" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "sponsor_floats_held" CHECK ("sponsor_floats"."held" >= 0)
);
--> statement-breakpoint
CREATE TABLE "sponsored_transfers" (
	"inner_hash" text PRIMARY KEY NOT NULL,
	"outer_hash" text NOT NULL,
	"account" text NOT NULL,
	"recipient" text NOT NULL,
	"sponsor" text NOT NULL,
	"envelope" text NOT NULL,
	"bid" bigint NOT NULL,
	"max_time" bigint NOT NULL,
	"quota_day" text NOT NULL,
	"since_ledger" integer NOT NULL,
	"status" text DEFAULT 'held' NOT NULL,
	"result_code" text,
	"contract_error" integer,
	"ledger_hash" text,
	"ledger" integer,
	"fee_charged" bigint,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"sent_at" timestamp with time zone,
	"settled_at" timestamp with time zone,
	CONSTRAINT "sponsored_transfers_outer_hash_unique" UNIQUE("outer_hash"),
	CONSTRAINT "sponsored_transfers_status" CHECK ("sponsored_transfers"."status" in ('held', 'sent', 'success', 'failed', 'dead')),
	CONSTRAINT "sponsored_transfers_settled" CHECK (("sponsored_transfers"."status" in ('success', 'failed', 'dead')) = ("sponsored_transfers"."settled_at" is not null)),
	CONSTRAINT "sponsored_transfers_bid" CHECK ("sponsored_transfers"."bid" > 0)
);
--> statement-breakpoint
CREATE TABLE "used_challenges" (
	"hash" text PRIMARY KEY NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE INDEX "sponsored_transfers_open" ON "sponsored_transfers" USING btree ("created_at") WHERE "sponsored_transfers"."status" in ('held', 'sent');--> statement-breakpoint
CREATE INDEX "sponsored_transfers_account" ON "sponsored_transfers" USING btree ("account","created_at");