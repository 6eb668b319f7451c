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
