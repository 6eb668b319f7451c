import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, test } from 'vitest'
import { Address, Hash } from '#app/(operator)/hash.tsx'
import { TransferHashes } from '#app/(operator)/transfers/transfer-hashes.tsx'

const OUTER = 'b'.repeat(64)
const INNER = 'a'.repeat(64)
const OTHER = 'c'.repeat(64)
const EXPLORER = 'https://stellar.expert/explorer/testnet/tx/'

/** The texts shown for a transfer that was applied as `ledgerHash`, one per hash. */
function show(ledgerHash: string | null, network = 'testnet', outerHash = OUTER) {
  const transfer = { outerHash, innerHash: INNER, ledgerHash }
  const html = renderToStaticMarkup(createElement(TransferHashes, { transfer, network }))
  return {
    html,
    linked: [...html.matchAll(/href="([^"]*)"/g)].map(([, href]) => href),
    items: [...html.matchAll(/<li.*?<\/li>/g)].map(([item]) => item.replaceAll(/<[^>]*>/g, '')),
  }
}

describe('links only applied hashes to the explorer', () => {
  test('the sponsor’s envelope', () => {
    const { linked, items } = show(OUTER)
    expect(linked).toEqual([`${EXPLORER}${OUTER}`])
    expect(items).toEqual([`${OUTER} outer, on the ledger`, `${INNER} inner`])
  })

  test('the client’s own transaction, if the client submitted it directly', () => {
    const { linked, items } = show(INNER)
    expect(linked).toEqual([`${EXPLORER}${INNER}`])
    expect(items).toEqual([`${OUTER} outer`, `${INNER} inner, on the ledger`, 'It was applied without the sponsor'])
  })

  test('a third transaction, which is also shown', () => {
    const { linked, items } = show(OTHER)
    expect(linked).toEqual([`${EXPLORER}${OTHER}`])
    expect(items).toEqual([
      `${OTHER} ledger, on the ledger`,
      `${OUTER} outer`,
      `${INNER} inner`,
      'It was applied without the sponsor',
    ])
  })

  test('no hash while none is known to be applied', () => {
    const { linked, items } = show(null)
    expect(linked).toEqual([])
    expect(items).toEqual([`${OUTER} outer`, `${INNER} inner`])
  })

  test.each([INNER, null])('a deposit, which has one hash, applied as %s', (ledgerHash) => {
    const { linked, items } = show(ledgerHash, 'testnet', INNER)
    expect(linked).toEqual(ledgerHash ? [`${EXPLORER}${INNER}`] : [])
    expect(items).toEqual([`${INNER} transaction${ledgerHash ? ', on the ledger' : ''}`])
  })

  test('a page of this service if the network has no explorer', () => {
    const { linked, items } = show(OUTER, 'local')
    expect(linked).toEqual([`/ledger/${OUTER}`])
    expect(items).toEqual([`${OUTER} outer, on the ledger`, `${INNER} inner`])
  })
})

test('lets each hash be copied in full, and shows its last digits', () => {
  const hashes = [OTHER, OUTER, INNER].map((hash) => `${hash.slice(4)}${hash[0]}123`)
  const [ledgerHash = '', outerHash = '', innerHash = ''] = hashes
  const transfer = { outerHash, innerHash, ledgerHash }
  const html = renderToStaticMarkup(createElement(TransferHashes, { transfer, network: 'testnet' }))
  expect([...html.matchAll(/aria-label="Copy (\w+)"/g)].map(([, hash]) => hash)).toEqual(hashes)
  expect([...html.matchAll(/data-tail="(\w+)"/g)].map(([, tail]) => tail)).toEqual(['c123', 'b123', 'a123'])
})

test.each([true, false])('shows a hash in full: %s', (isWhole) => {
  const html = renderToStaticMarkup(createElement(Hash, { value: OUTER, isWhole }))
  expect(html.includes('data-whole="true"')).toBe(isWhole)
})

test.each([
  [`G${'A'.repeat(55)}`, 'testnet', `https://stellar.expert/explorer/testnet/account/G${'A'.repeat(55)}`],
  [`C${'A'.repeat(55)}`, 'testnet', `https://stellar.expert/explorer/testnet/contract/C${'A'.repeat(55)}`],
  [`G${'A'.repeat(55)}`, 'local', undefined],
  ['no address', 'testnet', undefined],
])('links %s on %s to %s, and contains it as one word', (value, network, href) => {
  const html = renderToStaticMarkup(createElement(Address, { value, network }))
  expect(/href="([^"]*)"/.exec(html)?.[1]).toBe(href)
  expect(html).toContain(`>${value}</code>`)
  expect(html).toContain(`aria-label="Copy ${value}"`)
})
