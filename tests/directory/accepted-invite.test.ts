import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { AcceptedInvite } from '#app/invite/[token]/accepted-invite.tsx'

const show = (application: string | undefined) =>
  renderToStaticMarkup(
    createElement(AcceptedInvite, {
      token: 'token',
      contractor: 'id',
      email: 'none',
      problem: '',
      choosesAccount: false,
      status: 'onboarding',
      hasAccount: true,
      contract: undefined,
      application,
      isLocal: false,
      service: 'https://pay.example',
    }),
  )

test('links an accepted invite to the employer’s application, or names it', () => {
  expect(show('https://pay.example')).toMatch(/<a href="https:\/\/pay.example"[^>]*>your employer’s application<\/a>/)
  expect(show(undefined)).toContain('the application that your employer uses')
})
