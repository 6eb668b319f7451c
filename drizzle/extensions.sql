DO $$
BEGIN
	CREATE EXTENSION IF NOT EXISTS "pg_trgm";
EXCEPTION WHEN OTHERS THEN
	RAISE EXCEPTION 'the extension pg_trgm cannot be created (%): see docs/deploy.md, “One server”', SQLERRM USING ERRCODE = SQLSTATE;
END
$$;
--> statement-breakpoint
