import { expect, test } from 'vitest'
import { missingStatements, undeclaredContractions } from '#drizzle/declared-objects.ts'

const BREAK = '\n--> statement-breakpoint\n'
const FUNCTION = 'CREATE FUNCTION "note"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;'
const TRIGGER = 'CREATE TRIGGER "noted" BEFORE INSERT ON "notes" FOR EACH ROW EXECUTE FUNCTION "note"();'
const OVERLOAD = FUNCTION.replace('"note"()', '"note"("at" text)')
const both = [FUNCTION, TRIGGER].join(BREAK)

test.each<[string, string, string[], string[]]>([
  ['nothing if the migrations create all of them', both, ['CREATE TABLE "notes" ();', both], []],
  ['nothing if a later migration replaces one', both, [both.replace('NEW', 'OLD'), FUNCTION], []],
  ['what is new', both, [FUNCTION], [TRIGGER.replace('CREATE', 'CREATE OR REPLACE')]],
  ['what has changed', both, [both.replace('NEW', 'OLD')], [FUNCTION.replace('CREATE', 'CREATE OR REPLACE')]],
  [
    'a trigger before its function, if both are gone',
    '',
    [both],
    ['DROP TRIGGER IF EXISTS "noted" ON "notes";', 'DROP FUNCTION IF EXISTS "note"();'],
  ],
  ['nothing for a function below a comment', `-- why\n${both}`, [both], []],
  [
    'a trigger on another table, and drops the one before',
    [FUNCTION, TRIGGER.replace('"notes"', '"remarks"')].join(BREAK),
    [both],
    [
      TRIGGER.replace('"notes"', '"remarks"').replace('CREATE', 'CREATE OR REPLACE'),
      'DROP TRIGGER IF EXISTS "noted" ON "notes";',
    ],
  ],
  [
    'a function with renamed arguments, after dropping it',
    OVERLOAD.replace('"at"', '"since"'),
    [OVERLOAD],
    [
      'DROP FUNCTION IF EXISTS "note"(text);',
      OVERLOAD.replace('"at"', '"since"').replace('CREATE', 'CREATE OR REPLACE'),
    ],
  ],
  [
    'a function with a default, after dropping it once',
    OVERLOAD.replace('text)', 'numeric(10,2) DEFAULT 0)'),
    [OVERLOAD.replace('text)', 'numeric(10,2))')],
    [
      'DROP FUNCTION IF EXISTS "note"(numeric(10,2));',
      OVERLOAD.replace('text)', 'numeric(10,2) DEFAULT 0)').replace('CREATE', 'CREATE OR REPLACE'),
    ],
  ],
  ['nothing if a migration dropped what is gone', FUNCTION, [both, 'DROP TRIGGER IF EXISTS "noted" ON "notes";'], []],
  [
    'a function with other arguments beside the one that goes',
    OVERLOAD,
    [FUNCTION],
    [OVERLOAD.replace('CREATE', 'CREATE OR REPLACE'), 'DROP FUNCTION IF EXISTS "note"();'],
  ],
])('a migration gets %s', (_, declared, migrations, missing) => {
  expect(missingStatements(declared, migrations)).toEqual(missing)
})

test.each([
  'DROP TABLE "notes";',
  'DROP INDEX "notes_at";',
  'DROP FUNCTION IF EXISTS "note"();',
  'ALTER TABLE "notes" DROP COLUMN "at";',
  'ALTER TABLE "notes" DROP CONSTRAINT "notes_check";',
  'ALTER TABLE "notes" RENAME COLUMN "at" TO "since";',
  'ALTER TABLE "notes" RENAME TO "remarks";',
  'ALTER TABLE "notes" ALTER COLUMN "at" SET NOT NULL;',
  'ALTER TABLE "notes" ALTER COLUMN "at" SET DATA TYPE text;',
  'ALTER TABLE "notes" ADD COLUMN "by" text NOT NULL;',
  'ALTER TABLE "notes" ALTER COLUMN "by" DROP DEFAULT;',
  'ALTER TABLE "notes" ADD CONSTRAINT "notes_by" CHECK ("by" <> \' DEFAULT \');',
  'CREATE UNIQUE INDEX "notes_by" ON "notes" ("by");',
  'DELETE FROM "notes";',
])('%s must say which versions it ends', (statement) => {
  expect(undeclaredContractions(`CREATE TABLE "more" ();${BREAK}-- why\n${statement}`, 4)).toEqual([statement])
  expect(undeclaredContractions(`${statement}${BREAK}INSERT INTO "contractions" VALUES (4);`, 4)).toEqual([])
  // These numbers end no version, or the version itself.
  for (const least of [1, 5]) {
    const migration = `${statement}${BREAK}INSERT INTO "contractions" VALUES (${least});`
    expect(undeclaredContractions(migration, 4)).toEqual([statement])
  }
})

test.each([
  'ALTER TABLE "notes" ADD COLUMN "by" text;',
  'ALTER TABLE "notes" ADD COLUMN "by" text DEFAULT \'x\' NOT NULL;',
  'ALTER TABLE "notes" ALTER COLUMN "by" DROP NOT NULL;',
  'CREATE INDEX "notes_by" ON "notes" ("by");',
  `ALTER TABLE "notes" ADD COLUMN "by" text;${BREAK}CREATE UNIQUE INDEX "notes_by" ON "notes" ("by");`,
  `ALTER TABLE "notes" DROP CONSTRAINT "notes_check";${BREAK}ALTER TABLE "notes" ADD CONSTRAINT "notes_check" CHECK (true);`,
  `CREATE TABLE "others" ();${BREAK}CREATE UNIQUE INDEX "others_by" ON "others" ("by");`,
  `CREATE TABLE "others" ();${BREAK}ALTER TABLE "others" ADD CONSTRAINT "others_by" CHECK (true);`,
  'ALTER TABLE "notes" ADD COLUMN "twice" integer GENERATED ALWAYS AS (2) STORED NOT NULL;',
])('%s disturbs no older version', (statement) => {
  expect(undeclaredContractions(statement, 4)).toEqual([])
})
