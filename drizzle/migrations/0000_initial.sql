DO $$
BEGIN
	CREATE EXTENSION IF NOT EXISTS "pg_trgm";
EXCEPTION WHEN OTHERS THEN
	RAISE EXCEPTION 'the extension pg_trgm cannot be created (%): see docs/deploy.md, “One server”', SQLERRM USING ERRCODE = SQLSTATE;
END
$$;
--> statement-breakpoint
CREATE TABLE "archive_event_accounts" (
	"stream" integer NOT NULL,
	"account" text NOT NULL,
	"toid" bigint NOT NULL,
	"event_index" integer NOT NULL,
	"role" text,
	CONSTRAINT "archive_event_accounts_stream_account_toid_event_index_pk" PRIMARY KEY("stream","account","toid","event_index"),
	CONSTRAINT "archive_event_accounts_role" CHECK ("archive_event_accounts"."role" in ('checkpoint', 'anchor'))
);
--> statement-breakpoint
CREATE TABLE "archive_events" (
	"stream" integer NOT NULL,
	"toid" bigint NOT NULL,
	"event_index" integer NOT NULL,
	"closed_at" bigint NOT NULL,
	"tx_hash" "bytea" NOT NULL,
	"type" text NOT NULL,
	"topics" "bytea" NOT NULL,
	"data" "bytea" NOT NULL,
	CONSTRAINT "archive_events_stream_toid_event_index_pk" PRIMARY KEY("stream","toid","event_index")
);
--> statement-breakpoint
CREATE TABLE "archive_final_ranges" (
	"stream" integer NOT NULL,
	"from_ledger" integer NOT NULL,
	"through_ledger" integer NOT NULL,
	CONSTRAINT "archive_final_ranges_stream_from_ledger_pk" PRIMARY KEY("stream","from_ledger"),
	CONSTRAINT "archive_final_ranges_order" CHECK ("archive_final_ranges"."through_ledger" >= "archive_final_ranges"."from_ledger")
);
--> statement-breakpoint
CREATE TABLE "archive_payloads" (
	"stream" integer NOT NULL,
	"toid" bigint NOT NULL,
	"event_index" integer NOT NULL,
	"status" text DEFAULT 'wanted' NOT NULL,
	"tried" integer DEFAULT 0 NOT NULL,
	"payload" "bytea",
	CONSTRAINT "archive_payloads_stream_toid_event_index_pk" PRIMARY KEY("stream","toid","event_index"),
	CONSTRAINT "archive_payloads_status" CHECK ("archive_payloads"."status" in ('wanted', 'stored', 'lost')),
	CONSTRAINT "archive_payloads_stored" CHECK (("archive_payloads"."status" = 'stored') = ("archive_payloads"."payload" is not null))
);
--> statement-breakpoint
CREATE TABLE "archive_ranges" (
	"stream" integer NOT NULL,
	"from_ledger" integer NOT NULL,
	"through_ledger" integer NOT NULL,
	"from_hash" text NOT NULL,
	"through_hash" text NOT NULL,
	"through_closed_at" bigint NOT NULL,
	CONSTRAINT "archive_ranges_stream_from_ledger_pk" PRIMARY KEY("stream","from_ledger"),
	CONSTRAINT "archive_ranges_order" CHECK ("archive_ranges"."through_ledger" >= "archive_ranges"."from_ledger" - 1)
);
--> statement-breakpoint
CREATE TABLE "archive_streams" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "archive_streams_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"token" text NOT NULL,
	"contract" text NOT NULL,
	"role" text NOT NULL,
	"generation" text,
	"claimed_until" timestamp (3) with time zone,
	"reread_to" integer DEFAULT 0 NOT NULL,
	"reread_after" integer DEFAULT 0 NOT NULL,
	"reread_through" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "archive_streams_contract" UNIQUE("token","contract"),
	CONSTRAINT "archive_streams_generation" CHECK (("archive_streams"."role" = 'token') = ("archive_streams"."generation" is not null)),
	CONSTRAINT "archive_streams_role" CHECK ("archive_streams"."role" in ('token', 'registry'))
);
--> statement-breakpoint
CREATE TABLE "acknowledgements" (
	"condition" text NOT NULL,
	"subject" uuid NOT NULL,
	"note" text NOT NULL,
	"operator" text NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"seen" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "acknowledgements_condition_subject_pk" PRIMARY KEY("condition","subject")
);
--> statement-breakpoint
CREATE TABLE "audit_log" (
	"sequence" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_log_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp (3) with time zone NOT NULL,
	"organisation" uuid,
	"actor_kind" text NOT NULL,
	"actor_sub" text NOT NULL,
	"action" text NOT NULL,
	"subject_id" text NOT NULL,
	"request_id" text,
	"detail" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "audit_log_actor" CHECK ("audit_log"."actor_kind" in ('ledger', 'idp', 'service', 'operator'))
);
--> statement-breakpoint
CREATE TABLE "refusals" (
	"account" text NOT NULL,
	"hour" text NOT NULL,
	"reason" text NOT NULL,
	"count" integer DEFAULT 1 NOT NULL,
	"last_hash" text NOT NULL,
	"last_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "refusals_account_hour_reason_pk" PRIMARY KEY("account","hour","reason")
);
--> statement-breakpoint
CREATE TABLE "chores" (
	"name" text PRIMARY KEY NOT NULL,
	"begun_at" timestamp (3) with time zone NOT NULL,
	"after" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "contractions" (
	"migrations" integer PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE TABLE "organisation_costs" (
	"organisation" uuid PRIMARY KEY NOT NULL,
	"sequence" bigint NOT NULL,
	"day_transfers" integer DEFAULT 0 NOT NULL,
	"day_failed" integer DEFAULT 0 NOT NULL,
	"day_fees" bigint DEFAULT 0 NOT NULL,
	"month_transfers" integer DEFAULT 0 NOT NULL,
	"month_failed" integer DEFAULT 0 NOT NULL,
	"month_fees" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "organisation_hours" (
	"hour" text NOT NULL,
	"organisation" uuid NOT NULL,
	"is_recent" boolean DEFAULT true NOT NULL,
	"transfers" integer NOT NULL,
	"failed" integer NOT NULL,
	"fees" bigint NOT NULL,
	CONSTRAINT "organisation_hours_hour_organisation_pk" PRIMARY KEY("hour","organisation")
);
--> statement-breakpoint
CREATE TABLE "refusal_counts" (
	"reason" text PRIMARY KEY NOT NULL,
	"count" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "settlement_counts" (
	"hour" text NOT NULL,
	"status" text NOT NULL,
	"sponsor" text NOT NULL,
	"below" integer NOT NULL,
	"count" bigint NOT NULL,
	"milliseconds" bigint NOT NULL,
	"fees" bigint NOT NULL,
	CONSTRAINT "settlement_counts_hour_status_sponsor_below_pk" PRIMARY KEY("hour","status","sponsor","below")
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
	"progressed_at" timestamp (3) with time zone,
	"failed_at" timestamp (3) with time zone,
	"completed_at" timestamp (3) with time zone,
	CONSTRAINT "batches_of_organisation" UNIQUE("organisation","id"),
	CONSTRAINT "batches_status" CHECK ("batches"."status" in ('draft', 'ready', 'started', 'completed', 'failed')),
	CONSTRAINT "batches_counts" CHECK ("batches"."settled_count" >= 0 and "batches"."failed_count" >= 0),
	CONSTRAINT "batches_ended" CHECK ("batches"."settled_count" + "batches"."failed_count" <= "batches"."payout_count")
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
	"organisation" uuid DEFAULT gen_random_uuid() NOT NULL,
	"email" text,
	"joined_at" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "identities_kind_sub_pk" PRIMARY KEY("kind","sub"),
	CONSTRAINT "identities_kind" CHECK ("identities"."kind" in ('ledger', 'idp')),
	CONSTRAINT "identities_issuer" CHECK (("identities"."kind" = 'idp') = ("identities"."issuer" is not null))
);
--> statement-breakpoint
CREATE TABLE "organisations" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"sequence" bigint GENERATED ALWAYS AS IDENTITY (sequence name "organisations_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"registrations_asked_at" timestamp (3) with time zone,
	"batch_count" integer DEFAULT 0 NOT NULL,
	"contractor_count" integer DEFAULT 0 NOT NULL,
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
	"encrypted_amount" text,
	"transfer" uuid,
	"tx_hash" text,
	"error" text,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"paid_at" timestamp (3) with time zone,
	CONSTRAINT "payouts_status" CHECK ("payouts"."status" in ('draft', 'ready', 'pending', 'paid', 'failed', 'canceled')),
	CONSTRAINT "payouts_paid" CHECK (("payouts"."status" = 'paid') = ("payouts"."paid_at" is not null)),
	CONSTRAINT "payouts_paid_hash" CHECK ("payouts"."status" <> 'paid' or "payouts"."tx_hash" is not null),
	CONSTRAINT "payouts_amount" CHECK ("payouts"."status" in ('paid', 'canceled') or "payouts"."encrypted_amount" is not null),
	CONSTRAINT "payouts_pending" CHECK ("payouts"."status" <> 'pending' or num_nulls("payouts"."transfer", "payouts"."error") < 2)
);
--> statement-breakpoint
CREATE TABLE "payment_stops" (
	"token" text PRIMARY KEY NOT NULL,
	"since" timestamp (3) with time zone,
	"foreign_since" timestamp (3) with time zone,
	"found" integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "relay_channels" (
	"token" text NOT NULL,
	"address" text NOT NULL,
	"sealed_balance" text,
	"sealed_opening" text,
	"sealed_mark_key" text,
	"problem" text,
	"problem_since" timestamp (3) with time zone,
	"adopted_sequence" bigint,
	"ledger_sequence" bigint,
	"reconciled_stop" timestamp (3) with time zone,
	"has_unknown_purpose" boolean DEFAULT false NOT NULL,
	"reconcile_problem" text,
	"retired" boolean DEFAULT false NOT NULL,
	"paused" boolean DEFAULT false NOT NULL,
	"runs" boolean DEFAULT false NOT NULL,
	"run_problem" text,
	"compared_at" timestamp (3) with time zone,
	"seen_at" timestamp (3) with time zone NOT NULL,
	"read_at" timestamp (3) with time zone,
	CONSTRAINT "relay_channels_token_address_pk" PRIMARY KEY("token","address"),
	CONSTRAINT "relay_channels_problem" CHECK ("relay_channels"."problem" in ('account', 'registration', 'sequence', 'balance', 'history')),
	CONSTRAINT "relay_channels_reconcile_problem" CHECK ("relay_channels"."reconcile_problem" in ('transfer-open', 'rpc-behind', 'history-gap', 'failed'))
);
--> statement-breakpoint
CREATE TABLE "relay_jobs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"sequence" bigint GENERATED ALWAYS AS IDENTITY (sequence name "relay_jobs_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"user_kind" text NOT NULL,
	"user_sub" text NOT NULL,
	"relay_key" text NOT NULL,
	"batch" uuid,
	"manifest" text,
	"signature" text,
	"quota_day" text,
	"status" text DEFAULT 'running' NOT NULL,
	"error" text,
	"code" text,
	"created_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone,
	CONSTRAINT "relay_jobs_status" CHECK ("relay_jobs"."status" in ('running', 'completed', 'failed')),
	CONSTRAINT "relay_jobs_ended" CHECK (("relay_jobs"."status" = 'running') = ("relay_jobs"."ended_at" is null)),
	CONSTRAINT "relay_jobs_run" CHECK (num_nulls("relay_jobs"."batch", "relay_jobs"."manifest", "relay_jobs"."signature", "relay_jobs"."quota_day") in (0, 4)),
	CONSTRAINT "relay_jobs_run_of_account" CHECK ("relay_jobs"."batch" is null or "relay_jobs"."user_kind" = 'ledger')
);
--> statement-breakpoint
CREATE TABLE "relay_lines" (
	"job" uuid NOT NULL,
	"position" integer NOT NULL,
	"recipient" text,
	"payout" uuid,
	"spender" text,
	"live_until" integer,
	"sealed_amount" text,
	"quota_account" text NOT NULL,
	"queued_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"due" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"channel" text,
	"leased_until" timestamp (3) with time zone,
	"doubted_ledger" integer,
	"unable" text[] DEFAULT '{}'::text[] NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"sent_at" timestamp (3) with time zone,
	"outcome" text,
	"error" text,
	"hash" text,
	"settled_at" timestamp (3) with time zone,
	CONSTRAINT "relay_lines_job_position_pk" PRIMARY KEY("job","position"),
	CONSTRAINT "relay_lines_outcome" CHECK ("relay_lines"."outcome" in ('paid', 'failed', 'unknown', 'canceled')),
	CONSTRAINT "relay_lines_settled" CHECK (("relay_lines"."outcome" is null) = ("relay_lines"."settled_at" is null)),
	CONSTRAINT "relay_lines_sealed" CHECK (("relay_lines"."outcome" is null) = ("relay_lines"."sealed_amount" is not null)),
	CONSTRAINT "relay_lines_run" CHECK (num_nulls("relay_lines"."payout", "relay_lines"."spender", "relay_lines"."live_until") in (0, 3)),
	CONSTRAINT "relay_lines_leased" CHECK ("relay_lines"."leased_until" is null or ("relay_lines"."channel" is not null and "relay_lines"."outcome" is null)),
	CONSTRAINT "relay_lines_paid" CHECK ("relay_lines"."outcome" is distinct from 'paid' or "relay_lines"."hash" is not null)
);
--> statement-breakpoint
CREATE TABLE "envelopes" (
	"inner_hash" text PRIMARY KEY NOT NULL,
	"outer_hash" text,
	"transfer" uuid NOT NULL,
	"signed" text,
	"bid" bigint NOT NULL,
	"sealed_opening" text,
	"max_time" bigint NOT NULL,
	"result_code" text,
	"refused_ledger" integer,
	"sent_ledger" integer,
	"recorded_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"first_sent_at" timestamp (3) with time zone,
	"last_sent_at" timestamp (3) with time zone
);
--> statement-breakpoint
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
CREATE TABLE "transfers" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"sequence" bigint GENERATED ALWAYS AS IDENTITY (sequence name "transfers_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"kind" text NOT NULL,
	"account" text NOT NULL,
	"owner" text,
	"sequence_number" bigint NOT NULL,
	"recipient" text NOT NULL,
	"sponsor" text,
	"quota_account" text,
	"quota_day" text NOT NULL,
	"bid" bigint NOT NULL,
	"recorded_ledger" integer NOT NULL,
	"looked_up_ledger" integer,
	"status" text DEFAULT 'open' NOT NULL,
	"organisation" uuid,
	"request_id" text,
	"payout" uuid,
	"found_for" uuid,
	"line_job" uuid,
	"line_position" integer,
	"hash" text,
	"applied" text,
	"ledger" integer,
	"applied_at" timestamp (3) with time zone,
	"result_code" text,
	"contract_error" integer,
	"fee_charged" bigint,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"settled_at" timestamp (3) with time zone,
	CONSTRAINT "transfers_status" CHECK ("transfers"."status" in ('open', 'succeeded', 'failed', 'expired', 'unknown')),
	CONSTRAINT "transfers_kind" CHECK ("transfers"."kind" in ('transfer', 'register', 'merge', 'set_spender', 'revoke_spender', 'delegated', 'deposit')),
	CONSTRAINT "transfers_owner" CHECK (("transfers"."kind" = 'delegated') = ("transfers"."owner" is not null)),
	CONSTRAINT "transfers_settled" CHECK (("transfers"."status" = 'open') = ("transfers"."settled_at" is null)),
	CONSTRAINT "transfers_applied" CHECK (("transfers"."status" in ('succeeded', 'failed')) = ("transfers"."hash" is not null)),
	CONSTRAINT "transfers_bid" CHECK ("transfers"."bid" >= 0),
	CONSTRAINT "transfers_line_whole" CHECK (("transfers"."line_job" is null) = ("transfers"."line_position" is null))
);
--> statement-breakpoint
CREATE TABLE "used_challenges" (
	"hash" text PRIMARY KEY NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "archive_event_accounts" ADD CONSTRAINT "archive_event_accounts_event" FOREIGN KEY ("stream","toid","event_index") REFERENCES "public"."archive_events"("stream","toid","event_index") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "archive_events" ADD CONSTRAINT "archive_events_stream_archive_streams_id_fk" FOREIGN KEY ("stream") REFERENCES "public"."archive_streams"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "archive_final_ranges" ADD CONSTRAINT "archive_final_ranges_stream_archive_streams_id_fk" FOREIGN KEY ("stream") REFERENCES "public"."archive_streams"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "archive_payloads" ADD CONSTRAINT "archive_payloads_event" FOREIGN KEY ("stream","toid","event_index") REFERENCES "public"."archive_events"("stream","toid","event_index") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "archive_ranges" ADD CONSTRAINT "archive_ranges_stream_archive_streams_id_fk" FOREIGN KEY ("stream") REFERENCES "public"."archive_streams"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "organisation_costs" ADD CONSTRAINT "organisation_costs_organisation_organisations_id_fk" FOREIGN KEY ("organisation") REFERENCES "public"."organisations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "batches" ADD CONSTRAINT "batches_organisation_organisations_id_fk" FOREIGN KEY ("organisation") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "contractors" ADD CONSTRAINT "contractors_organisation_organisations_id_fk" FOREIGN KEY ("organisation") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "contractors" ADD CONSTRAINT "contractors_linked_identity" FOREIGN KEY ("linked_kind","linked_sub") REFERENCES "public"."identities"("kind","sub") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payouts" ADD CONSTRAINT "payouts_batch" FOREIGN KEY ("organisation","batch") REFERENCES "public"."batches"("organisation","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payouts" ADD CONSTRAINT "payouts_contractor" FOREIGN KEY ("organisation","contractor") REFERENCES "public"."contractors"("organisation","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "relay_jobs" ADD CONSTRAINT "relay_jobs_batch_batches_id_fk" FOREIGN KEY ("batch") REFERENCES "public"."batches"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "relay_lines" ADD CONSTRAINT "relay_lines_payout_payouts_id_fk" FOREIGN KEY ("payout") REFERENCES "public"."payouts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "relay_lines" ADD CONSTRAINT "relay_lines_job" FOREIGN KEY ("job") REFERENCES "public"."relay_jobs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "envelopes" ADD CONSTRAINT "envelopes_transfer_transfers_id_fk" FOREIGN KEY ("transfer") REFERENCES "public"."transfers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "transfers" ADD CONSTRAINT "transfers_organisation_organisations_id_fk" FOREIGN KEY ("organisation") REFERENCES "public"."organisations"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "transfers" ADD CONSTRAINT "transfers_payout_payouts_id_fk" FOREIGN KEY ("payout") REFERENCES "public"."payouts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "transfers" ADD CONSTRAINT "transfers_found_for_payouts_id_fk" FOREIGN KEY ("found_for") REFERENCES "public"."payouts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "transfers" ADD CONSTRAINT "transfers_line" FOREIGN KEY ("line_job","line_position") REFERENCES "public"."relay_lines"("job","position") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "archive_event_accounts_role" ON "archive_event_accounts" USING btree ("stream","account","role","toid","event_index") WHERE "archive_event_accounts"."role" is not null;--> statement-breakpoint
CREATE INDEX "archive_events_transaction" ON "archive_events" USING btree ("tx_hash");--> statement-breakpoint
CREATE INDEX "archive_payloads_wanted" ON "archive_payloads" USING btree ("stream","tried","toid") WHERE "archive_payloads"."status" = 'wanted';--> statement-breakpoint
CREATE INDEX "audit_log_newest" ON "audit_log" USING btree ("organisation","sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "audit_log_newest_of_action" ON "audit_log" USING btree ("action","sequence" DESC NULLS FIRST) WHERE not "audit_log"."action" in ('payout.paid', 'transfer.sponsored');--> statement-breakpoint
CREATE INDEX "audit_log_subject" ON "audit_log" USING hash ("subject_id");--> statement-breakpoint
CREATE INDEX "audit_log_sign_ins" ON "audit_log" USING btree ("subject_id","sequence") WHERE "audit_log"."action" in ('operator.admitted', 'operator.rejected');--> statement-breakpoint
CREATE INDEX "audit_log_mailed" ON "audit_log" USING btree ("organisation","at") WHERE "audit_log"."action" in ('contractor.invited', 'contractor.mail-failed');--> statement-breakpoint
CREATE INDEX "audit_log_refused" ON "audit_log" USING btree ("actor_sub","sequence") WHERE "audit_log"."action" = 'transfer.refused';--> statement-breakpoint
CREATE INDEX "audit_log_refused_of_organisation" ON "audit_log" USING btree ("organisation","sequence") WHERE "audit_log"."action" = 'transfer.refused';--> statement-breakpoint
CREATE INDEX "audit_log_refused_contractor" ON "audit_log" USING btree (("detail" ->> 'contractor'),"sequence") WHERE "audit_log"."action" = 'transfer.refused';--> statement-breakpoint
CREATE INDEX "audit_log_refused_reason" ON "audit_log" USING btree (("detail" ->> 'reason'),"sequence") WHERE "audit_log"."action" = 'transfer.refused';--> statement-breakpoint
CREATE INDEX "audit_log_actor" ON "audit_log" USING btree ("actor_sub","sequence") WHERE ("audit_log"."actor_kind" <> 'service' or not "audit_log"."actor_sub" in ('settlement'));--> statement-breakpoint
CREATE INDEX "audit_log_request" ON "audit_log" USING btree ("request_id","sequence") WHERE "audit_log"."request_id" is not null;--> statement-breakpoint
CREATE INDEX "refusals_oldest" ON "refusals" USING btree ("last_at");--> statement-breakpoint
CREATE INDEX "organisation_costs_day" ON "organisation_costs" USING btree ("day_fees","sequence");--> statement-breakpoint
CREATE INDEX "organisation_costs_month" ON "organisation_costs" USING btree ("month_fees","sequence");--> statement-breakpoint
CREATE INDEX "organisation_hours_recent" ON "organisation_hours" USING btree ("hour") WHERE "organisation_hours"."is_recent";--> statement-breakpoint
CREATE INDEX "organisation_hours_organisation" ON "organisation_hours" USING btree ("organisation");--> statement-breakpoint
CREATE INDEX "batches_newest" ON "batches" USING btree ("organisation","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "batches_newest_of_all" ON "batches" USING btree ("created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "batches_newest_of_status" ON "batches" USING btree ("status","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "batches_name" ON "batches" USING btree (lower("name") text_pattern_ops);--> statement-breakpoint
CREATE INDEX "batches_parts" ON "batches" USING gin (lower("name") gin_trgm_ops);--> statement-breakpoint
CREATE INDEX "batches_in_progress" ON "batches" USING btree ("progressed_at","sequence") WHERE "batches"."status" = 'started';--> statement-breakpoint
CREATE INDEX "batches_with_failures" ON "batches" USING btree ("failed_at" DESC NULLS FIRST,"id") WHERE "batches"."failed_count" > 0;--> statement-breakpoint
CREATE INDEX "batches_unfinished" ON "batches" USING btree ("status") WHERE "batches"."status" <> 'completed';--> statement-breakpoint
CREATE UNIQUE INDEX "contractors_unique_email" ON "contractors" USING btree ("organisation","email_folded") WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "contractors_unique_address" ON "contractors" USING btree ("organisation","address") WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_newest" ON "contractors" USING btree ("organisation","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST,"status") WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_removed" ON "contractors" USING btree ("organisation") WHERE "contractors"."deleted_at" is not null;--> statement-breakpoint
CREATE INDEX "contractors_newest_of_all" ON "contractors" USING btree ("created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST) WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_linked" ON "contractors" USING btree ("linked_kind","linked_sub") WHERE "contractors"."deleted_at" is null and "contractors"."linked_kind" is not null;--> statement-breakpoint
CREATE INDEX "contractors_newest_of_status" ON "contractors" USING btree ("status","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST) WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_name" ON "contractors" USING btree (lower("name") text_pattern_ops) WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_email" ON "contractors" USING btree ("email_folded" text_pattern_ops) WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_parts" ON "contractors" USING gin (lower("name") gin_trgm_ops,"email_folded" gin_trgm_ops) WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_address" ON "contractors" USING btree ("address") WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "contractors_waiting" ON "contractors" USING btree ("organisation","sequence") WHERE "contractors"."deleted_at" is null and "contractors"."status" in ('invited', 'onboarding') and "contractors"."address" is not null;--> statement-breakpoint
CREATE INDEX "contractors_waiting_of_all" ON "contractors" USING btree ("sequence") WHERE "contractors"."deleted_at" is null and "contractors"."status" in ('invited', 'onboarding') and "contractors"."address" is not null;--> statement-breakpoint
CREATE INDEX "identities_organisation" ON "identities" USING btree ("organisation");--> statement-breakpoint
CREATE INDEX "identities_email" ON "identities" USING btree ("email" text_pattern_ops);--> statement-breakpoint
CREATE INDEX "identities_parts" ON "identities" USING gin ("email" gin_trgm_ops);--> statement-breakpoint
CREATE INDEX "organisations_newest" ON "organisations" USING btree ("created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "organisations_name" ON "organisations" USING btree (lower("name") text_pattern_ops);--> statement-breakpoint
CREATE INDEX "organisations_parts" ON "organisations" USING gin (lower("name") gin_trgm_ops);--> statement-breakpoint
CREATE UNIQUE INDEX "payouts_once" ON "payouts" USING btree ("batch","contractor") WHERE "payouts"."status" <> 'canceled';--> statement-breakpoint
CREATE INDEX "payouts_newest" ON "payouts" USING btree ("organisation","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "payouts_by_status" ON "payouts" USING btree ("organisation","status","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST) WHERE "payouts"."status" <> 'paid';--> statement-breakpoint
CREATE INDEX "payouts_by_contractor" ON "payouts" USING btree ("contractor","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "payouts_by_batch" ON "payouts" USING btree ("batch","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "payouts_by_address" ON "payouts" USING btree ("address");--> statement-breakpoint
CREATE INDEX "payouts_sequence" ON "payouts" USING btree ("sequence");--> statement-breakpoint
CREATE INDEX "payouts_to_settle" ON "payouts" USING btree ("organisation","address","status","created_at","sequence") WHERE "payouts"."status" in ('ready', 'failed');--> statement-breakpoint
CREATE INDEX "payouts_unpaid" ON "payouts" USING btree ("status","batch","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST) WHERE "payouts"."status" <> 'paid';--> statement-breakpoint
CREATE UNIQUE INDEX "relay_jobs_one_running" ON "relay_jobs" USING btree ("user_kind","user_sub") WHERE "relay_jobs"."status" = 'running' and "relay_jobs"."batch" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "relay_jobs_one_run" ON "relay_jobs" USING btree ("batch") WHERE "relay_jobs"."status" = 'running' and "relay_jobs"."batch" is not null;--> statement-breakpoint
CREATE INDEX "relay_jobs_of_batch" ON "relay_jobs" USING btree ("batch","created_at") WHERE "relay_jobs"."batch" is not null;--> statement-breakpoint
CREATE INDEX "relay_jobs_newest" ON "relay_jobs" USING btree ("created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "relay_jobs_newest_of_status" ON "relay_jobs" USING btree ("status","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "relay_jobs_of_user" ON "relay_jobs" USING btree ("user_sub","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "relay_lines_open" ON "relay_lines" USING btree ("queued_at","job","position") WHERE "relay_lines"."outcome" is null;--> statement-breakpoint
CREATE INDEX "relay_lines_open_of_job" ON "relay_lines" USING btree ("job","position") WHERE "relay_lines"."outcome" is null;--> statement-breakpoint
CREATE INDEX "relay_lines_open_until" ON "relay_lines" USING btree ("live_until") WHERE "relay_lines"."live_until" is not null and "relay_lines"."outcome" is null;--> statement-breakpoint
CREATE INDEX "relay_lines_turn_of_run" ON "relay_lines" USING btree ("spender","quota_account","due","job","position") WHERE "relay_lines"."spender" is not null and "relay_lines"."outcome" is null;--> statement-breakpoint
CREATE INDEX "relay_lines_turn_of_job" ON "relay_lines" USING btree ("due","job","position") WHERE "relay_lines"."spender" is null and "relay_lines"."outcome" is null;--> statement-breakpoint
CREATE INDEX "relay_lines_leased_by" ON "relay_lines" USING btree ("channel") WHERE "relay_lines"."leased_until" is not null;--> statement-breakpoint
CREATE INDEX "relay_lines_ended" ON "relay_lines" USING btree ("job","settled_at") WHERE "relay_lines"."settled_at" is not null;--> statement-breakpoint
CREATE INDEX "relay_lines_of_spender" ON "relay_lines" USING btree ("spender","quota_account","settled_at") WHERE "relay_lines"."spender" is not null;--> statement-breakpoint
CREATE INDEX "relay_lines_of_channel" ON "relay_lines" USING btree ("channel","settled_at") WHERE "relay_lines"."spender" is null;--> statement-breakpoint
CREATE INDEX "relay_lines_of_payout" ON "relay_lines" USING btree ("payout") WHERE "relay_lines"."payout" is not null;--> statement-breakpoint
CREATE INDEX "relay_lines_of_recipient" ON "relay_lines" USING btree ("recipient") WHERE "relay_lines"."payout" is null;--> statement-breakpoint
CREATE INDEX "relay_lines_unpaid" ON "relay_lines" USING btree ("outcome") WHERE "relay_lines"."outcome" is null or "relay_lines"."outcome" in ('failed', 'unknown');--> statement-breakpoint
CREATE INDEX "relay_lines_of_error" ON "relay_lines" USING btree ("error") WHERE "relay_lines"."outcome" = 'failed';--> statement-breakpoint
CREATE INDEX "envelopes_outer_hash" ON "envelopes" USING hash ("outer_hash");--> statement-breakpoint
CREATE INDEX "envelopes_of_transfer" ON "envelopes" USING btree ("transfer");--> statement-breakpoint
CREATE INDEX "envelopes_with_signed" ON "envelopes" USING btree ("recorded_at") WHERE "envelopes"."signed" is not null;--> statement-breakpoint
CREATE INDEX "quotas_of_day" ON "quotas" USING btree ("day");--> statement-breakpoint
CREATE UNIQUE INDEX "transfers_one_open" ON "transfers" USING btree ("account") WHERE "transfers"."status" = 'open';--> statement-breakpoint
CREATE INDEX "transfers_open" ON "transfers" USING btree ("created_at") WHERE "transfers"."status" in ('open', 'unknown');--> statement-breakpoint
CREATE INDEX "transfers_of_number" ON "transfers" USING btree ("account","sequence_number");--> statement-breakpoint
CREATE INDEX "transfers_account" ON "transfers" USING btree ("account","created_at");--> statement-breakpoint
CREATE INDEX "transfers_recipient" ON "transfers" USING btree ("recipient","created_at");--> statement-breakpoint
CREATE INDEX "transfers_quota_account" ON "transfers" USING btree ("quota_account","created_at") WHERE "transfers"."quota_account" is not null;--> statement-breakpoint
CREATE INDEX "transfers_open_of_organisation" ON "transfers" USING btree ("organisation","created_at") WHERE "transfers"."status" = 'open';--> statement-breakpoint
CREATE INDEX "transfers_payout" ON "transfers" USING btree ("payout");--> statement-breakpoint
CREATE UNIQUE INDEX "transfers_one_of_payout" ON "transfers" USING btree ("payout") WHERE "transfers"."status" in ('open', 'succeeded', 'unknown');--> statement-breakpoint
CREATE INDEX "transfers_line" ON "transfers" USING btree ("line_job","line_position") WHERE "transfers"."line_job" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "transfers_one_of_line" ON "transfers" USING btree ("line_job","line_position") WHERE "transfers"."line_job" is not null and "transfers"."status" in ('open', 'succeeded', 'unknown');--> statement-breakpoint
CREATE INDEX "transfers_found_for" ON "transfers" USING btree ("found_for") WHERE "transfers"."found_for" is not null;--> statement-breakpoint
CREATE INDEX "transfers_newest" ON "transfers" USING btree ("created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "transfers_newest_failed" ON "transfers" USING btree ("created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST,"result_code","contract_error") WHERE "transfers"."status" in ('failed', 'expired', 'unknown');--> statement-breakpoint
CREATE INDEX "transfers_newest_of_organisation" ON "transfers" USING btree ("organisation","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "transfers_newest_failed_of_organisation" ON "transfers" USING btree ("organisation","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST) WHERE "transfers"."status" in ('failed', 'expired', 'unknown');--> statement-breakpoint
CREATE INDEX "used_challenges_oldest" ON "used_challenges" USING btree ("expires_at");--> statement-breakpoint
CREATE FUNCTION "refuse_audit_log_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'audit_log is append-only' USING ERRCODE = 'integrity_constraint_violation';
END
$$;--> statement-breakpoint
CREATE TRIGGER "audit_log_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_log" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_log_change"();
--> statement-breakpoint
CREATE FUNCTION "count_added_batches"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE "organisations" SET "batch_count" = "batch_count" + "more"."records"
		FROM (SELECT "organisation", count(*) AS "records" FROM "added" GROUP BY "organisation") AS "more"
		WHERE "organisations"."id" = "more"."organisation";
	RETURN NULL;
END
$$;--> statement-breakpoint
CREATE TRIGGER "batches_added" AFTER INSERT ON "batches" REFERENCING NEW TABLE AS "added" FOR EACH STATEMENT EXECUTE FUNCTION "count_added_batches"();--> statement-breakpoint
CREATE FUNCTION "count_removed_batch"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE "organisations" SET "batch_count" = "batch_count" - 1 WHERE "id" = OLD."organisation";
	RETURN NULL;
END
$$;--> statement-breakpoint
CREATE TRIGGER "batches_removed" AFTER DELETE ON "batches" FOR EACH ROW EXECUTE FUNCTION "count_removed_batch"();--> statement-breakpoint
CREATE FUNCTION "count_added_contractors"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE "organisations" SET "contractor_count" = "contractor_count" + "more"."records"
		FROM (SELECT "organisation", count(*) AS "records" FROM "added" WHERE "deleted_at" IS NULL GROUP BY "organisation") AS "more"
		WHERE "organisations"."id" = "more"."organisation";
	RETURN NULL;
END
$$;--> statement-breakpoint
CREATE TRIGGER "contractors_added" AFTER INSERT ON "contractors" REFERENCING NEW TABLE AS "added" FOR EACH STATEMENT EXECUTE FUNCTION "count_added_contractors"();--> statement-breakpoint
CREATE FUNCTION "count_removed_contractor"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE "organisations" SET "contractor_count" = "contractor_count" - 1 WHERE "id" = NEW."organisation";
	RETURN NULL;
END
$$;--> statement-breakpoint
CREATE TRIGGER "contractors_removed" AFTER UPDATE OF "deleted_at" ON "contractors" FOR EACH ROW WHEN (OLD."deleted_at" IS NULL AND NEW."deleted_at" IS NOT NULL) EXECUTE FUNCTION "count_removed_contractor"();--> statement-breakpoint
CREATE FUNCTION "add_organisation_costs"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO "organisation_costs" ("organisation", "sequence") SELECT "id", "sequence" FROM "added";
	RETURN NULL;
END
$$;--> statement-breakpoint
CREATE TRIGGER "organisations_added" AFTER INSERT ON "organisations" REFERENCING NEW TABLE AS "added" FOR EACH STATEMENT EXECUTE FUNCTION "add_organisation_costs"();--> statement-breakpoint
CREATE FUNCTION "remove_organisation_hours"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM "organisation_hours" WHERE "organisation" = OLD."id";
	RETURN OLD;
END
$$;--> statement-breakpoint
CREATE TRIGGER "organisations_removed" BEFORE DELETE ON "organisations" FOR EACH ROW EXECUTE FUNCTION "remove_organisation_hours"();--> statement-breakpoint
CREATE FUNCTION "count_settled"("at_hour" text, "with_status" text, "of_sponsor" text, "in_bucket" integer, "payer" uuid, "of_job" uuid, "more" integer, "took" bigint, "charged" bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	"unpaid" integer := CASE "with_status" WHEN 'succeeded' THEN 0 ELSE "more" END;
	"in_day" integer;
BEGIN
	INSERT INTO "settlement_counts" AS "counts" ("hour", "status", "sponsor", "below", "count", "milliseconds", "fees")
		VALUES ("at_hour", "with_status", "of_sponsor", "in_bucket", "more", "took", "charged"),
			('ever', "with_status", "of_sponsor", "in_bucket", "more", "took", "charged")
		ON CONFLICT ("hour", "status", "sponsor", "below") DO UPDATE SET "count" = "counts"."count" + "more",
			"milliseconds" = "counts"."milliseconds" + "took", "fees" = "counts"."fees" + "charged";
	-- The payment of a batch job belongs to the organisation of the person who sent the job.
	IF "payer" IS NULL AND "of_job" IS NOT NULL THEN
		SELECT "organisations"."id" INTO "payer" FROM "relay_jobs"
			JOIN "identities" ON "identities"."kind" = "user_kind" AND "identities"."sub" = "user_sub"
			JOIN "organisations" ON "organisations"."id" = "identities"."organisation" WHERE "relay_jobs"."id" = "of_job";
	END IF;
	IF "payer" IS NULL THEN RETURN; END IF;
	INSERT INTO "organisation_hours" AS "counts" ("hour", "organisation", "transfers", "failed", "fees")
		VALUES ("at_hour", "payer", "more", "unpaid", "charged")
		ON CONFLICT ("hour", "organisation") DO UPDATE SET "transfers" = "counts"."transfers" + "more",
			"failed" = "counts"."failed" + "unpaid", "fees" = "counts"."fees" + "charged"
		RETURNING "is_recent"::integer INTO "in_day";
	UPDATE "organisation_costs" SET "day_transfers" = "day_transfers" + "in_day" * "more",
		"day_failed" = "day_failed" + "in_day" * "unpaid", "day_fees" = "day_fees" + "in_day" * "charged",
		"month_transfers" = "month_transfers" + "more", "month_failed" = "month_failed" + "unpaid",
		"month_fees" = "month_fees" + "charged" WHERE "organisation" = "payer";
END
$$;
--> statement-breakpoint
CREATE FUNCTION "note_channel_problem"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW."problem" IS NULL THEN
		NEW."problem_since" := NULL;
	ELSIF TG_OP = 'INSERT' OR NEW."problem" IS DISTINCT FROM OLD."problem" THEN
		NEW."problem_since" := clock_timestamp();
	END IF;
	RETURN NEW;
END
$$;--> statement-breakpoint
CREATE TRIGGER "relay_channels_problem_since" BEFORE INSERT OR UPDATE OF "problem" ON "relay_channels" FOR EACH ROW EXECUTE FUNCTION "note_channel_problem"();
