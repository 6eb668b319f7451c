import { describe, expect, test } from 'vitest'
import { isOwnForm } from '#lib/auth/form-origin.ts'

const PUBLIC = 'https://payroll.example'
const LOCAL = 'http://localhost:3000'
const isOwn = (headers: Record<string, string>, publicUrl = PUBLIC) => isOwnForm(new Headers(headers), publicUrl)

describe('accepts a form of this service', () => {
  test.each<[Record<string, string>]>([
    [{ origin: PUBLIC }],
    [{ origin: PUBLIC, host: 'upstream' }],
    [{ origin: PUBLIC, 'x-forwarded-host': 'elsewhere.example' }],
    [{ origin: 'null', 'sec-fetch-site': 'same-origin' }],
    [{ 'sec-fetch-site': 'same-origin' }],
    [{ referer: `${PUBLIC}/sign-in?to=%2Foverview` }],
    [{ origin: 'null', referer: `${PUBLIC}/` }],
  ])('%j', (headers) => {
    expect(isOwn(headers)).toBe(true)
  })

  test.each(['localhost', '127.0.0.1', '127.0.0.2', '[::1]'])('at %s, entirely on this machine', (name) => {
    const origin = `http://${name}:3000`
    expect(isOwn({ origin }, LOCAL)).toBe(true)
    expect(isOwn({ referer: `${origin}/sign-in` }, LOCAL)).toBe(true)
    expect(isOwn({ origin: LOCAL }, origin)).toBe(true)
  })
})

describe('rejects a foreign form', () => {
  test.each<[Record<string, string>]>([
    [{}],
    [{ origin: 'https://elsewhere.example' }],
    // Proxy headers prove nothing: only the configured address is trusted.
    [{ origin: 'https://elsewhere.example', host: 'elsewhere.example', 'x-forwarded-host': 'elsewhere.example' }],
    [{ origin: 'https://elsewhere.example', 'sec-fetch-site': 'same-origin', referer: PUBLIC }],
    [{ origin: 'http://payroll.example' }],
    [{ origin: 'https://payroll.example:8443' }],
    [{ origin: 'https://payroll.example.elsewhere.example' }],
    [{ origin: 'https://a.payroll.example' }],
    [{ origin: 'null' }],
    [{ origin: '' }],
    [{ origin: 'payroll.example' }],
    [{ origin: 'null', 'sec-fetch-site': 'cross-site', referer: PUBLIC }],
    [{ 'sec-fetch-site': 'same-site' }],
    [{ 'sec-fetch-site': 'none' }],
    [{ referer: 'https://elsewhere.example/?https://payroll.example' }],
    [{ referer: 'https://payroll.example@elsewhere.example/' }],
    [{ origin: LOCAL }],
  ])('%j', (headers) => {
    expect(isOwn(headers)).toBe(false)
  })

  test.each([
    'http://localhost:3001',
    'https://localhost:3000',
    'http://localhost.elsewhere.example:3000',
    'http://127.0.0.1.elsewhere.example:3000',
    'http://10.0.0.1:3000',
  ])('at %s, which is not this port of this machine', (origin) => {
    expect(isOwn({ origin }, LOCAL)).toBe(false)
  })
})
