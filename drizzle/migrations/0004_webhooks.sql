CREATE TABLE "webhook_deliveries" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"sequence" bigint GENERATED ALWAYS AS IDENTITY (sequence name "webhook_deliveries_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"webhook" uuid NOT NULL,
	"event" bigint NOT NULL,
	"event_id" text NOT NULL,
	"type" text NOT NULL,
	"batch" uuid,
	"status" text DEFAULT 'waiting' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"due" timestamp (3) with time zone,
	"leased_until" timestamp (3) with time zone,
	"attempted_at" timestamp (3) with time zone,
	"ended_at" timestamp (3) with time zone,
	"response_status" integer,
	"response" text,
	"error" text,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "webhook_deliveries_event" UNIQUE("webhook","event"),
	CONSTRAINT "webhook_deliveries_status" CHECK ("webhook_deliveries"."status" in ('waiting', 'held', 'delivered', 'failed')),
	CONSTRAINT "webhook_deliveries_error" CHECK ("webhook_deliveries"."error" in ('status', 'redirect', 'timeout', 'address-refused', 'tls', 'unreachable', 'event-gone'))
);
--> statement-breakpoint
CREATE TABLE "webhooks" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"sequence" bigint GENERATED ALWAYS AS IDENTITY (sequence name "webhooks_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"organisation" uuid NOT NULL,
	"url" text NOT NULL,
	"types" text[],
	"key_id" text NOT NULL,
	"secret_version" integer DEFAULT 1 NOT NULL,
	"previous_until" timestamp (3) with time zone,
	"cursor" bigint NOT NULL,
	"disabled_at" timestamp (3) with time zone,
	"disabled_reason" text,
	"notice_due" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "webhooks_disabled" CHECK (("webhooks"."disabled_at" is null) = ("webhooks"."disabled_reason" is null)),
	CONSTRAINT "webhooks_disabled_reason" CHECK ("webhooks"."disabled_reason" in ('gone', 'failing'))
);
--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_webhook_webhooks_id_fk" FOREIGN KEY ("webhook") REFERENCES "public"."webhooks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_organisation_organisations_id_fk" FOREIGN KEY ("organisation") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" USING btree ("due","event") WHERE "webhook_deliveries"."status" = 'waiting';--> statement-breakpoint
CREATE INDEX "webhook_deliveries_in_order" ON "webhook_deliveries" USING btree ("webhook","batch","event") WHERE "webhook_deliveries"."status" in ('waiting', 'held');--> statement-breakpoint
CREATE INDEX "webhook_deliveries_leased" ON "webhook_deliveries" USING btree ("leased_until") WHERE "webhook_deliveries"."leased_until" is not null;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_newest" ON "webhook_deliveries" USING btree ("webhook","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "webhook_deliveries_oldest" ON "webhook_deliveries" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "webhooks_of_organisation" ON "webhooks" USING btree ("organisation");--> statement-breakpoint
CREATE INDEX "webhooks_disabled_at" ON "webhooks" USING btree ("disabled_at") WHERE "webhooks"."disabled_at" is not null;--> statement-breakpoint
CREATE INDEX "webhooks_notice" ON "webhooks" USING btree ("notice_due") WHERE "webhooks"."notice_due" is not null;