import { globSync, readFileSync } from 'node:fs'
import { type Rule, sources, testSources } from './sources.ts'

/** Words that a newcomer would have to learn, with their replacements. */
const WORDS: Record<string, string> = {
  lane: 'channel worker',
  lanes: 'channel workers',
  pursuit: 'track',
  glance: 'poll',
  dispenser: 'faucet',
  dispensing: 'grant',
  promotion: 'activation',
  promote: 'activate',
  promoted: 'activated',
  forsaken: 'stale',
  hopeless: 'given up',
  befriend: 'request friendbot',
  desk: 'context',
  troubles: 'failures',
  housekeeping: 'maintenance',
  sweeper: 'maintenance',
}

/** Words that are fine in prose but too vague as names, with their replacements. */
const NAMES: Record<string, string> = {
  town: 'test service',
  ground: 'test ledger',
  works: 'test service',
  office: 'test service',
  visitor: 'api client',
}

/** Splits a name into words: `openTown`, `sponsor-desk.ts`, `MAX_LANES`. */
function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^A-Za-z]+/)
    .map((word) => word.toLowerCase())
}

/** The code of a file without comments and strings. */
function codeOf(source: string): string {
  return source
    .replaceAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g, '')
}

const own = (file: string) => !file.startsWith('tests/house/')
/** Poseidon has lanes, and so does a ledger that applies transactions in parallel. */
const hasLanes = (file: string) => /^(lib|tests)\/(wallet|prover|disclosure|devnet)\//.test(file)

function isForbidden(word: string, file: string, words: Record<string, string>): boolean {
  return Object.hasOwn(words, word) && !(/^lanes?$/.test(word) && hasLanes(file))
}

const NO_SUBJECT = 'whoever|whatever|whichever|nobody|somebody|of ours'
/** A comment, or a line with a test's name. */
const IN_SENTENCE = new RegExp(`(?:/\\*|(?<!:)//|^ *\\*|^ *(?:test|it|describe)\\b).*\\b(${NO_SUBJECT})\\b`, 'gim')

/** Additional phrases that pages must not contain. */
const IN_PAGE = new RegExp(`\\b(${NO_SUBJECT}|of its own|stands? on the ledger)\\b`, 'gi')

const readPages = () =>
  globSync(['*.md', 'docs/*.md', 'drizzle/*.md', 'lib/*/*.md']).map((file): [string, string] => [
    file,
    readFileSync(file, 'utf8'),
  ])

export const WORD_RULES: Rule[] = [
  {
    name: 'a page has subjects, and nothing stands on the ledger',
    violations: () =>
      readPages().flatMap(([file, source]) => [...source.matchAll(IN_PAGE)].map(([phrase]) => `${file}: ${phrase}`)),
  },
  {
    name: 'a comment or test name has no vague subject',
    violations: () =>
      [...sources, ...testSources]
        .filter(([file]) => own(file))
        .flatMap(([file, source]) => [...source.matchAll(IN_SENTENCE)].map(([, word]) => `${file}: ${word}`)),
  },
  {
    name: 'names are words of the field',
    violations: () => {
      return [...sources, ...testSources]
        .filter(([file]) => own(file))
        .flatMap(([file, source]) => {
          const names = new Set([file, ...(codeOf(source).match(/[A-Za-z_$][\w$]*/g) ?? [])])
          const all: Record<string, string> = { ...WORDS, ...NAMES }
          const forbidden = [...names].flatMap(wordsOf).filter((word) => isForbidden(word, file, all))
          return [...new Set(forbidden)].map((word) => `${file}: ${word}, write ${all[word]}`)
        })
    },
  },
  {
    name: 'comments, messages and pages are in words of the field',
    violations: () => {
      return [...sources, ...testSources, ...readPages()]
        .filter(([file]) => own(file))
        .flatMap(([file, source]) => {
          const forbidden = new Set(wordsOf(source).filter((word) => isForbidden(word, file, WORDS)))
          return [...forbidden].map((word) => `${file}: ${word}, write ${WORDS[word]}`)
        })
    },
  },
]
