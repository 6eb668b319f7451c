import { readFile } from 'node:fs/promises'
import { Marked, type Token } from 'marked'
import { dataPath } from '#lib/config/data-directory.ts'

/** The guides that the reference serves: files of `docs`, without their extension. */
export const GUIDES = {
  api: 'The three journeys',
  events: 'Events and webhooks',
  walkthrough: 'Walkthrough: commands and code',
  runs: 'Runs: the relay pays a batch',
  disclosure: 'Disclosure and audit',
  'embedded-ledger': 'The embedded ledger',
  'relay-and-proofs': 'The relay and its proofs',
  configuration: 'Configuration',
  deploy: 'Deploy',
  operate: 'Operate',
  releases: 'Releases',
  decisions: 'Decisions',
} as const
export type GuideName = keyof typeof GUIDES

export const isGuide = (name: string): name is GuideName => Object.hasOwn(GUIDES, name)

const marked = new Marked()
const loading = new Map<GuideName, Promise<readonly Token[]>>()

/** A guide's content, read once. */
export function readGuide(name: GuideName): Promise<readonly Token[]> {
  const text = readFile(dataPath(process.cwd(), `docs/${name}.md`), 'utf8')
  const tokens = loading.get(name) ?? text.then((markdown) => marked.lexer(markdown))
  loading.set(name, tokens)
  return tokens
}

/** The anchor that GitHub gives a heading. */
export const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

/**
 * The address of a link in a guide: other guides and the error codes are pages here. Undefined for a file that is not
 * served.
 */
export function guideAddress(href: string): string | undefined {
  if (/^(https?:|#)/.test(href)) return href
  const [, name = '', anchor = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? []
  if (name === 'error-codes') return `/docs/errors${anchor.replace('#', '#status-')}`
  return isGuide(name) ? `/docs/guides/${name}${anchor}` : undefined
}
