CREATE TABLE "audit_log" (
	"sequence" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_log_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp (3) with time zone NOT NULL,
	"organisation" uuid,
	"actor_kind" text NOT NULL,
	"actor_sub" text NOT NULL,
	"action" text NOT NULL,
	"subject_kind" text NOT NULL,
	"subject_id" text NOT NULL,
	"detail" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "audit_log_actor" CHECK ("audit_log"."actor_kind" in ('ledger', 'idp', 'service'))
);
--> statement-breakpoint
CREATE TABLE "batches" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"sequence" bigint GENERATED ALWAYS AS IDENTITY (sequence name "batches_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"organisation" uuid NOT NULL,
	"name" text NOT NULL,
	"status" text DEFAULT 'draft' NOT NULL,
	"payout_count" integer DEFAULT 0 NOT NULL,
	"settled_count" integer DEFAULT 0 NOT NULL,
	"failed_count" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"started_at" timestamp (3) with time zone,
	"completed_at" timestamp (3) with time zone,
	CONSTRAINT "batches_of_organisation" UNIQUE("organisation","id"),
	CONSTRAINT "batches_status" CHECK ("batches"."status" in ('draft', 'ready', 'started', 'completed', 'failed')),
	CONSTRAINT "batches_counts" CHECK ("batches"."settled_count" >= 0 and "batches"."failed_count" >= 0 and "batches"."settled_count" + "batches"."failed_count" <= "batches"."payout_count")
);
--> statement-breakpoint
CREATE TABLE "contractors" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"sequence" bigint GENERATED ALWAYS AS IDENTITY (sequence name "contractors_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"organisation" uuid NOT NULL,
	"name" text NOT NULL,
	"status" text NOT NULL,
	"email" text,
	"email_folded" text,
	"address" text,
	"pvk" text,
	"rate_amount" text,
	"rate_currency" text,
	"invite_version" integer DEFAULT 0 NOT NULL,
	"invite_expires_at" timestamp (3) with time zone NOT NULL,
	"invite_accepted_at" timestamp (3) with time zone,
	"linked_kind" text,
	"linked_sub" text,
	"last_paid_at" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"deleted_at" timestamp (3) with time zone,
	CONSTRAINT "contractors_of_organisation" UNIQUE("organisation","id"),
	CONSTRAINT "contractors_status" CHECK ("contractors"."status" in ('invited', 'onboarding', 'ready', 'inactive')),
	CONSTRAINT "contractors_email" CHECK (("contractors"."email" is null) = ("contractors"."email_folded" is null)),
	CONSTRAINT "contractors_pvk" CHECK ("contractors"."pvk" is null or ("contractors"."address" is not null and length("contractors"."pvk") = 128)),
	CONSTRAINT "contractors_rate" CHECK (("contractors"."rate_amount" is null) = ("contractors"."rate_currency" is null)),
	CONSTRAINT "contractors_link" CHECK (("contractors"."linked_kind" is null) = ("contractors"."linked_sub" is null))
);
--> statement-breakpoint
CREATE TABLE "identities" (
	"kind" text NOT NULL,
	"sub" text NOT NULL,
	"issuer" text,
	"organisation" uuid,
	"email" text,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "identities_kind_sub_pk" PRIMARY KEY("kind","sub"),
	CONSTRAINT "identities_kind" CHECK ("identities"."kind" in ('ledger', 'idp')),
	CONSTRAINT "identities_issuer" CHECK (("identities"."kind" = 'idp') = ("identities"."issuer" is not null))
);
--> statement-breakpoint
CREATE TABLE "organisations" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "payouts" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"sequence" bigint GENERATED ALWAYS AS IDENTITY (sequence name "payouts_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"organisation" uuid NOT NULL,
	"batch" uuid NOT NULL,
	"contractor" uuid NOT NULL,
	"status" text DEFAULT 'draft' NOT NULL,
	"address" text,
	"encrypted_amount" text NOT NULL,
	"transfer" text,
	"tx_hash" text,
	"error" text,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"paid_at" timestamp (3) with time zone,
	CONSTRAINT "payouts_once" UNIQUE("batch","contractor"),
	CONSTRAINT "payouts_status" CHECK ("payouts"."status" in ('draft', 'ready', 'pending', 'paid', 'failed', 'canceled')),
	CONSTRAINT "payouts_paid" CHECK (("payouts"."status" = 'paid') = ("payouts"."paid_at" is not null)),
	CONSTRAINT "payouts_paid_hash" CHECK ("payouts"."status" <> 'paid' or "payouts"."tx_hash" is not null),
	CONSTRAINT "payouts_pending" CHECK ("payouts"."status" <> 'pending' or "payouts"."transfer" is not null)
);
--> statement-breakpoint
ALTER TABLE "sponsored_transfers" ADD COLUMN "organisation" uuid;--> statement-breakpoint
ALTER TABLE "sponsored_transfers" ADD COLUMN "payout" uuid;--> statement-breakpoint
ALTER TABLE "batches" ADD CONSTRAINT "batches_organisation_organisations_id_fk" FOREIGN KEY ("organisation") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "contractors" ADD CONSTRAINT "contractors_organisation_organisations_id_fk" FOREIGN KEY ("organisation") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "contractors" ADD CONSTRAINT "contractors_linked_identity" FOREIGN KEY ("linked_kind","linked_sub") REFERENCES "public"."identities"("kind","sub") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identities" ADD CONSTRAINT "identities_organisation_organisations_id_fk" FOREIGN KEY ("organisation") REFERENCES "public"."organisations"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payouts" ADD CONSTRAINT "payouts_batch" FOREIGN KEY ("organisation","batch") REFERENCES "public"."batches"("organisation","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payouts" ADD CONSTRAINT "payouts_contractor" FOREIGN KEY ("organisation","contractor") REFERENCES "public"."contractors"("organisation","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_log_newest" ON "audit_log" USING btree ("organisation","sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "audit_log_subject" ON "audit_log" USING btree ("subject_kind","subject_id","sequence");--> statement-breakpoint
CREATE INDEX "batches_newest" ON "batches" USING btree ("organisation","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE UNIQUE INDEX "contractors_unique_email" ON "contractors" USING btree ("organisation","email_folded") WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "contractors_unique_address" ON "contractors" USING btree ("organisation","address") WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_newest" ON "contractors" USING btree ("organisation","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST) WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_linked" ON "contractors" USING btree ("linked_kind","linked_sub") WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_invited_email" ON "contractors" USING btree ("email_folded") WHERE "contractors"."deleted_at" is null and "contractors"."status" = 'invited';--> statement-breakpoint
CREATE INDEX "contractors_invited_address" ON "contractors" USING btree ("address") WHERE "contractors"."deleted_at" is null and "contractors"."status" in ('invited', 'onboarding');--> statement-breakpoint
CREATE INDEX "identities_organisation" ON "identities" USING btree ("organisation");--> statement-breakpoint
CREATE INDEX "payouts_newest" ON "payouts" USING btree ("organisation","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "payouts_by_status" ON "payouts" USING btree ("organisation","status","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "payouts_by_contractor" ON "payouts" USING btree ("contractor","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "payouts_by_batch" ON "payouts" USING btree ("batch","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "payouts_in_order" ON "payouts" USING btree ("batch","sequence");--> statement-breakpoint
CREATE INDEX "payouts_to_settle" ON "payouts" USING btree ("organisation","address","status","created_at","sequence") WHERE "payouts"."status" in ('ready', 'failed');--> statement-breakpoint
ALTER TABLE "sponsored_transfers" ADD CONSTRAINT "sponsored_transfers_organisation_organisations_id_fk" FOREIGN KEY ("organisation") REFERENCES "public"."organisations"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sponsored_transfers" ADD CONSTRAINT "sponsored_transfers_payout_payouts_id_fk" FOREIGN KEY ("payout") REFERENCES "public"."payouts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "sponsored_transfers_open_of_organisation" ON "sponsored_transfers" USING btree ("organisation","created_at") WHERE "sponsored_transfers"."status" in ('held', 'sent');--> statement-breakpoint
CREATE INDEX "sponsored_transfers_payout" ON "sponsored_transfers" USING btree ("payout");--> statement-breakpoint
CREATE FUNCTION "refuse_audit_log_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'audit_log is append-only' USING ERRCODE = 'integrity_constraint_violation';
END
$$;--> statement-breakpoint
CREATE TRIGGER "audit_log_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_log" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_log_change"();
