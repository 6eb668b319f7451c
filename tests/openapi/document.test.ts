import { expect, test } from 'vitest'
import { openApiDocument } from '#lib/openapi/document.ts'
import { loadRoutes, methodsOf } from '../support/api.ts'

const document = openApiDocument('http://localhost:3000/api')
const routes = await loadRoutes()
const methods = ['get', 'post', 'put', 'patch', 'delete'] as const

test('every route is in the document, with the methods that it handles, and nothing else is', async () => {
  const handled = await Promise.all(
    routes.map(async (route) => (await methodsOf(route)).map((method) => `${method} ${route.path}`)),
  )
  const documented = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    methods.filter((method) => item[method]).map((method) => `${method} ${path}`),
  )
  expect(documented.sort()).toEqual(handled.flat().sort())
})
