--> statement-breakpoint
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
