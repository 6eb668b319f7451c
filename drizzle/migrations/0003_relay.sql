CREATE TABLE "batch_items" (
	"job" uuid NOT NULL,
	"position" integer NOT NULL,
	"status" text DEFAULT 'queued' NOT NULL,
	"recipient" text,
	"sealed_amount" text,
	"quota_account" text NOT NULL,
	"channel" text,
	"attempt" integer DEFAULT 0 NOT NULL,
	"unable" text[] DEFAULT '{}'::text[] NOT NULL,
	"inner_hash" text,
	"signed_xdr" text,
	"sealed_opening" text,
	"hash" text,
	"error" text,
	"queued_at" timestamp (3) with time zone NOT NULL,
	"sent_at" timestamp (3) with time zone,
	"settled_at" timestamp (3) with time zone,
	CONSTRAINT "batch_items_job_position_pk" PRIMARY KEY("job","position"),
	CONSTRAINT "batch_items_status" CHECK ("batch_items"."status" in ('queued', 'taken', 'signed', 'paid', 'failed')),
	CONSTRAINT "batch_items_settled" CHECK (("batch_items"."status" in ('paid', 'failed')) = ("batch_items"."settled_at" is not null)),
	CONSTRAINT "batch_items_sealed" CHECK (("batch_items"."status" in ('paid', 'failed')) = ("batch_items"."sealed_amount" is null)),
	CONSTRAINT "batch_items_signed" CHECK (("batch_items"."status" = 'signed') = ("batch_items"."signed_xdr" is not null) and ("batch_items"."status" = 'signed') = ("batch_items"."sealed_opening" is not null)),
	CONSTRAINT "batch_items_channel" CHECK ("batch_items"."status" not in ('taken', 'signed') or ("batch_items"."channel" is not null and ("batch_items"."status" = 'taken' or "batch_items"."inner_hash" is not null))),
	CONSTRAINT "batch_items_paid" CHECK ("batch_items"."status" <> 'paid' or "batch_items"."hash" is not null)
);
--> statement-breakpoint
CREATE TABLE "batch_jobs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"user_kind" text NOT NULL,
	"user_sub" text NOT NULL,
	"status" text DEFAULT 'running' NOT NULL,
	"error" text,
	"created_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone,
	CONSTRAINT "batch_jobs_status" CHECK ("batch_jobs"."status" in ('running', 'completed', 'failed')),
	CONSTRAINT "batch_jobs_ended" CHECK (("batch_jobs"."status" = 'running') = ("batch_jobs"."ended_at" is null))
);
--> statement-breakpoint
CREATE TABLE "relay_channels" (
	"token" text NOT NULL,
	"address" text NOT NULL,
	"sealed_balance" text,
	"sealed_opening" text,
	"problem" text,
	"seen_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "relay_channels_token_address_pk" PRIMARY KEY("token","address"),
	CONSTRAINT "relay_channels_problem" CHECK ("relay_channels"."problem" in ('account', 'registration', 'sequence', 'balance', 'history'))
);
--> statement-breakpoint
ALTER TABLE "sponsored_transfers" ADD COLUMN "quota_account" text;--> statement-breakpoint
ALTER TABLE "batch_items" ADD CONSTRAINT "batch_items_job" FOREIGN KEY ("job") REFERENCES "public"."batch_jobs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "batch_items_one_per_channel" ON "batch_items" USING btree ("channel") WHERE "batch_items"."status" in ('taken', 'signed');--> statement-breakpoint
CREATE INDEX "batch_items_waiting" ON "batch_items" USING btree ("queued_at","job","position") WHERE "batch_items"."status" = 'queued';--> statement-breakpoint
CREATE UNIQUE INDEX "batch_jobs_one_running" ON "batch_jobs" USING btree ("user_kind","user_sub") WHERE "batch_jobs"."status" = 'running';--> statement-breakpoint
CREATE INDEX "batch_jobs_newest" ON "batch_jobs" USING btree ("created_at");