import { writeFileSync } from 'node:fs'
import { configurationPage, environmentExample } from '#lib/config/documentation.ts'

/** Writes what is generated from the code: the page of variables, and the example of a .env. */
writeFileSync('docs/configuration.md', configurationPage())
writeFileSync('.env.example', environmentExample())
