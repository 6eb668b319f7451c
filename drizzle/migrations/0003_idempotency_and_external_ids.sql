CREATE TABLE "idempotency_keys" (
	"kind" text NOT NULL,
	"sub" text NOT NULL,
	"key" text NOT NULL,
	"fingerprint" text NOT NULL,
	"outcome" jsonb NOT NULL,
	"unfinished_until" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "idempotency_keys_kind_sub_key_pk" PRIMARY KEY("kind","sub","key")
);
--> statement-breakpoint
ALTER TABLE "batches" ADD COLUMN "external_id" text;--> statement-breakpoint
ALTER TABLE "contractors" ADD COLUMN "external_id" text;--> statement-breakpoint
ALTER TABLE "payouts" ADD COLUMN "external_id" text;--> statement-breakpoint
CREATE INDEX "idempotency_keys_oldest" ON "idempotency_keys" USING btree ("created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "batches_unique_external_id" ON "batches" USING btree ("organisation","external_id") WHERE "batches"."external_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "contractors_unique_external_id" ON "contractors" USING btree ("organisation","external_id") WHERE "contractors"."external_id" is not null and "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "payouts_unique_external_id" ON "payouts" USING btree ("organisation","external_id") WHERE "payouts"."external_id" is not null;